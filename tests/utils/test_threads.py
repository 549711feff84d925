from threadpoolctl import threadpool_info

from graphratio._utils.threads import LARGE_PROBLEM, suitable_threads


def blas_threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_small_problems_use_one_thread_and_leave_things_as_they_were():
    before = blas_threads()
    with suitable_threads(100, 10):
        assert set(blas_threads()) == {1}
    assert blas_threads() == before
    with suitable_threads(LARGE_PROBLEM, 2):
        assert blas_threads() == before
