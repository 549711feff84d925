"""What the study consists of."""

from studies.paper.cells import Cell, Grid, cells_of
from studies.paper.methods import PAPER_METHODS, PLAIN


def test_standard_profile_is_the_documented_one():
    cells = cells_of("standard")
    main = {cell for cell in cells if cell.n_nodes == 100}
    for scenario in ("Ia", "Ib", "IIa", "IIb"):
        for n in (50, 100, 250, 500):
            for method in PAPER_METHODS:
                alphas = {0.1} | ({0.01, 0.5} if n == 50 else set())
                found = {
                    (cell.alpha, cell.seed)
                    for cell in main
                    if (cell.scenario, cell.method, cell.n) == (scenario, method, n)
                }
                wanted = {0.0} if method in PLAIN else alphas
                assert found == {(alpha, seed) for alpha in wanted for seed in range(10)}
    assert {cell.n_points for cell in cells} == {10_000}
    assert {c.n_nodes for c in cells if c.method == "GRULSIF" and c.n == 50} == {52, 100, 200, 400}


def test_full_profile_is_the_whole_grid_of_the_paper():
    cells = set(cells_of("full"))
    for alpha in (0.01, 0.1, 0.5):
        for n in (50, 100, 250, 500):
            assert Cell("IIa", "RULSIF", n, 100, alpha, seed=99) in cells
    assert set(cells_of("standard")) <= cells


def test_every_cell_once_and_under_its_own_name():
    cells = cells_of("standard")
    assert len({cell.key for cell in cells}) == len(set(cells)) == len(cells)


def test_seeds_come_one_after_the_other_in_a_fixed_order():
    cells = cells_of("standard")
    assert [cell.seed for cell in cells] == sorted(cell.seed for cell in cells)
    assert cells == cells_of("standard")
    first = [cell.scenario for cell in cells[:40]]
    assert len(set(first)) == 4, "a seed begins with a mixture, for a fair remaining time"


def test_plain_methods_run_once_per_data_set():
    cells = list(Grid(("Ia",), ("ULSIF", "KLIEP"), alphas=(0.01, 0.1, 0.5), seeds=3))
    assert [(cell.method, cell.alpha) for cell in cells] == [("ULSIF", 0.0)] * 3 + [
        ("KLIEP", 0.0)
    ] * 3
