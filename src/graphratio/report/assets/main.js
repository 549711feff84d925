// Selection ties map, table and panel together.
let selected = null, cameFrom = null;
const edgesBox = byId("edges");
const manyEdges = 4000;
edgesBox.checked = data.map.edges.length / 2 <= manyEdges;
byId("edges-label").hidden = data.map.edges.length === 0;
byId("map-caption").textContent = mapCaption();

const redrawMap = () => drawMap(selected, edgesBox.checked);
const table = nodeTable((i, from) => select(i, from));

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
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
addEventListener("beforeprint", () => { printing = true; redraw(); });
addEventListener("afterprint", () => { printing = false; redraw(); });

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
