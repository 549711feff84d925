// Selection ties map, table and panel together.
let selected = null, cameFrom = null;
const edgesBox = byId("edges");
const manyEdges = 4000;
edgesBox.checked = data.map.edges.length / 2 <= manyEdges;
byId("edges-label").hidden = data.map.edges.length === 0;
byId("map-caption").textContent = mapCaption();

const redrawMap = () => drawMap(selected, edgesBox.checked);
const table = nodeTable((i, from) => select(i, from));

// A map that was moved shows the node again.
const bringIntoFrame = (i) => {
  const { xaxis, yaxis } = byId("map")._fullLayout;
  const [x, y] = [data.map.x[i], data.map.y[i]];
  const inside = ([low, high], value) => value >= Math.min(low, high) && value <= Math.max(low, high);
  if (inside(xaxis.range, x) && inside(yaxis.range, y)) return;
  const around = ([low, high], value) => [value - (high - low) / 2, value + (high - low) / 2];
  Plotly.relayout("map", { "xaxis.range": around(xaxis.range, x), "yaxis.range": around(yaxis.range, y) });
};

// Scroll what was selected, its point on the map or the line that opened it, out from under the panel.
const keepInView = (i, from) => {
  const map = byId("map"), { yaxis } = map._fullLayout;
  let { top, bottom } = (from && from.isConnected ? from : map).getBoundingClientRect();
  if (!from) {
    const point = top + yaxis._offset + yaxis.d2p(data.map.y[i]);
    [top, bottom] = [point - 24, point + 24];
  }
  const panel = byId("panel").getBoundingClientRect();
  const end = (panel.top > 1 ? panel.top : innerHeight) - 12;
  if (bottom > end || top < 0) scrollBy({ top: (top + bottom - end) / 2, behavior: "instant" });
};

const select = (i, from) => {
  if (!window.Plotly) return;
  selected = i;
  if (from) cameFrom = from;
  byId("panel").hidden = false;
  document.body.classList.add("open");
  table.select(i);
  fillPanel(i, (other) => select(other));
  byId("panel").scrollTop = 0;
  byId("panel-heading").focus({ preventScroll: true });
  redrawMap();
  Plotly.Plots.resize("map");
  bringIntoFrame(i);
  keepInView(i, from);
};

const close = () => {
  if (selected === null) return;
  selected = null;
  byId("panel").hidden = true;
  document.body.classList.remove("open");
  table.select(null);
  redrawMap();
  Plotly.Plots.resize("map");
  if (cameFrom && cameFrom.isConnected) cameFrom.focus({ preventScroll: true });
  cameFrom = null;
};

const redraw = () => {
  redrawMap();
  drawKinds();
  drawSelection();
  if (selected !== null) drawPanel(selected);
};

const openOnClick = (map) => byId(map).on("plotly_click", (event) => {
  const i = event.points[0].customdata;
  if (i !== undefined) select(Number(i));
});

document.querySelectorAll(".findings button").forEach((button) => button.addEventListener(
  "click", () => select(Number(button.dataset.node), button)));
byId("close").addEventListener("click", close);
document.addEventListener("keydown", (event) => { if (event.key === "Escape") close(); });
edgesBox.addEventListener("change", redrawMap);
redrawWith(redraw);

// The table works before the chart library, which comes last in the file, has been read.
document.addEventListener("charts-ready", () => {
  redrawMap();
  openOnClick("map");
  document.documentElement.dataset.ready = Math.round(performance.now());
  // Below the fold: after the page is ready to use.
  requestAnimationFrame(() => setTimeout(() => {
    drawKinds();
    if (byId("kinds-map")) openOnClick("kinds-map");
    drawSelection();
  }));
});
