// A table that sorts by its headings and filters as one types.
// The change in the node's own observations; nodes.change is estimated with the help of neighbours, if there are any.
const ownChange = (i, j) => {
  const [before, after] = [nodes.mean[i][0][j], nodes.mean[i][1][j]];
  return before === null || after === null ? null : after - before;
};
const inUnit = (j) => (data.units[j] ? ` in ${data.units[j]}` : "");
const signed = (value) => (value === null ? "–" : `${value > 0 ? "+" : ""}${number(value, 3, 3)}`);
const largest = Math.max(data.scale.clear, ...nodes.divergence.filter((value) => value !== null));

const columns = [
  { title: data.noun[0], value: (i) => nameOf(i), text: true },
  { title: "verdict", value: (i) => verdicts.state[i], show: verdictOf, class: "verdict" },
  {
    title: "divergence", value: (i) => (nodes.rank[i] === null ? null : -nodes.rank[i]),
    show: divergenceText, class: "divergence",
  },
  ...nodes.table_features.map((j) => ({
    title: `change of mean, ${nodes.feature_names[j]}${inUnit(j)}${nodes.smoothed ? ", with neighbours" : ""}`,
    value: (i) => nodes.change[i][j], show: (i) => signed(nodes.change[i][j]),
  })),
  // Near its ceiling the divergence cannot tell nodes apart, and the effect size orders them.
  ...(nodes.near_ceiling.length ? [{
    title: "effect size", value: (i) => nodes.effect[i], show: (i) => number(nodes.effect[i], 3),
  }] : []),
  ...(tested ? [{
    title: pValueTitle, value: (i) => verdicts.adjusted[i], show: pValueText, ascending: true,
  }] : []),
  { title: `observations, ${data.sides[0]}`, value: (i) => nodes.n_reference[i] },
  { title: `observations, ${data.sides[1]}`, value: (i) => nodes.n_target[i] },
  { title: "effective sample size", value: (i) => nodes.effective[i], show: (i) => number(nodes.effective[i], 2) },
];
const manyRows = 1000, firstRows = 200;
const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

const nodeTable = (onSelect) => {
  const head = document.querySelector("#nodes thead"), body = document.querySelector("#nodes tbody");
  const rows = new Map();
  let sorted = { column: 2, descending: true }, query = "", all = nNodes <= manyRows, selected = null;

  const order = () => {
    const { value, text } = columns[sorted.column];
    const sign = sorted.descending ? -1 : 1;
    const keep = [];
    for (let i = 0; i < nNodes; i += 1) {
      if (!query || fullName(i).toLowerCase().includes(query)) keep.push(i);
    }
    return keep.sort((a, b) => {
      const [u, v] = [value(a), value(b)];
      // Unknown values come last in both directions.
      if (u === null || v === null) return (u === null) - (v === null) || a - b;
      return sign * (text ? collator.compare(u, v) : u - v) || a - b;
    });
  };

  const makeRow = (i) => {
    const row = element("tr", { "data-node": i, onclick: () => onSelect(i, row.querySelector("button")) });
    columns.forEach(({ value, show, text, class: extra }) => {
      const cell = element("td", { class: text ? "" : `number ${extra || ""}` });
      if (text) {
        cell.append(element("button", { type: "button", class: "link" }, nameOf(i)));
        if (nameOf(i) !== nodes.label[i]) cell.append(element("span", { class: "label" }, nodes.label[i]));
      } else {
        cell.textContent = show ? show(i) : number(value(i));
      }
      if (extra === "divergence" && nodes.divergence[i] > 0) {
        cell.style.setProperty("--share", `${(100 * nodes.divergence[i]) / largest}%`);
      }
      row.append(cell);
    });
    if (i === selected) row.setAttribute("aria-selected", "true");
    return row;
  };

  const render = () => {
    const wanted = order();
    const shown = all ? wanted : wanted.slice(0, firstRows);
    body.replaceChildren(...shown.map((i) => {
      if (!rows.has(i)) rows.set(i, makeRow(i));
      return rows.get(i);
    }));
    byId("count").textContent = query
      ? `${wanted.length.toLocaleString("en-US")} of ${nNodes.toLocaleString("en-US")} ${data.noun[1]}`
      : `${nNodes.toLocaleString("en-US")} ${data.noun[1]}`;
    const more = byId("more");
    more.hidden = shown.length === wanted.length;
    more.textContent = `Show all ${wanted.length.toLocaleString("en-US")} (now the first ${shown.length})`;
    [...head.querySelectorAll("th")].forEach((cell, place) => {
      cell.setAttribute("aria-sort", place !== sorted.column
        ? "none" : sorted.descending ? "descending" : "ascending");
    });
  };

  head.append(element("tr", {}, ...columns.map(({ title, text, ascending, class: extra }, place) => element(
    "th", { scope: "col", class: text ? "" : `number ${extra || ""}` },
    element("button", { type: "button", onclick: () => {
      // Numbers first from the largest, p-values from the smallest, names from A.
      const again = sorted.column === place;
      sorted = { column: place, descending: again ? !sorted.descending : !(text || ascending) };
      render();
      byId("table-scroll").scrollTop = 0;
    } }, title)))));
  byId("search").addEventListener("input", (event) => {
    query = event.target.value.trim().toLowerCase();
    render();
  });
  byId("more").addEventListener("click", () => { all = true; render(); });
  // Arrow keys walk through the rows.
  body.addEventListener("keydown", (event) => {
    const step = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key];
    const next = step && event.target.closest("tr")[step];
    if (next) { event.preventDefault(); next.querySelector("button").focus(); }
  });
  render();
  return {
    select(i) {
      if (rows.has(selected)) rows.get(selected).removeAttribute("aria-selected");
      selected = i;
      if (rows.has(i)) rows.get(i).setAttribute("aria-selected", "true");
    },
  };
};
