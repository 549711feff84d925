// The panel over time, the scan, and the map at the time of the slider.
const nNodes = data.nodes.length;
const nColumns = data.times.length;
const featureBox = byId("feature"), slider = byId("when"), playButton = byId("play");
slider.max = nColumns - 1;

// One signed byte per node and column, decoded when a feature is first shown.
const decoded = [];
const panelOf = (feature) => {
  if (!decoded[feature]) {
    const bytes = Int8Array.from(atob(data.panel[feature]), (c) => c.charCodeAt(0));
    decoded[feature] = Array.from({ length: nNodes }, (_, i) =>
      Array.from(bytes.subarray(i * nColumns, (i + 1) * nColumns), (value) => value / data.unit));
  }
  return decoded[feature];
};
const shownFeature = () => Number(featureBox.value);

// Low and high are two hues, the usual recedes into the page.
const valueScale = () => (isDark()
  ? [[0, "#56b4e9"], [0.5, "#1d2126"], [1, "#f0924a"]]
  : [[0, "#0072b2"], [0.5, "#f6f7f9"], [1, "#d55e00"]]);

const eventLines = () => data.events.map((event) => ({
  type: "line", xref: "x", yref: "paper", x0: event.time, x1: event.time, y0: 0, y1: 1,
  line: { color: colour("ink"), width: 1.5 },
}));
// Few labels where there is little room, so that they stay level.
const timeAxis = () => axis("", {
  range: [data.times[0], data.times[nColumns - 1]], tickangle: 0,
  nticks: document.body.clientWidth < 600 ? 3 : 8,
});
const colourBar = (title) => ({
  title: { text: title, side: "top", font: { size: 12 } }, thickness: 12, outlinewidth: 0,
  len: 0.9, tickfont: { size: 11 },
});
const wide = { l: 64, r: 92, t: 14, b: 34, autoexpand: false };

// Nodes that changed come first, and means over short stretches show what single times hide.
const everChanged = new Set(data.events.flatMap((event) => event.onsets.map(([node]) => node)));
const rowOrder = data.nodes.map((_, i) => i).sort((a, b) => everChanged.has(b) - everChanged.has(a));
const stride = Math.ceil(nColumns / 120);
const coarse = (row) => {
  const means = [];
  for (let c = 0; c < row.length; c += stride) {
    const part = row.slice(c, c + stride);
    means.push(part.reduce((sum, value) => sum + value, 0) / part.length);
  }
  return means;
};
const reachOf = (rows) => {
  const sizes = rows.flat().map(Math.abs).sort((a, b) => a - b);
  return Math.min(Math.max(sizes[Math.floor(0.98 * (sizes.length - 1))], 0.5), data.reach);
};
const betweenRows = everChanged.size && everChanged.size < nNodes ? [{
  type: "line", xref: "paper", yref: "y", x0: 0, x1: 1,
  y0: everChanged.size - 0.5, y1: everChanged.size - 0.5,
}] : [];

const drawPanel = () => {
  const fine = panelOf(shownFeature());
  const z = rowOrder.map((i) => coarse(fine[i]));
  const names = rowOrder.map((i) => data.nodes[i]);
  const reach = reachOf(z);
  const line = { color: colour("ink"), width: 1.5 };
  return Plotly.react("panel-chart", [{
    type: "heatmap", z, x: data.times.filter((_, c) => c % stride === 0), colorscale: valueScale(),
    zmin: -reach, zmax: reach, colorbar: colourBar("std. dev."),
    text: names.map((name) => Array(z[0].length).fill(shortText(name, 40))),
    hovertemplate: "%{text}<br>%{x}: %{z:.1f}<extra></extra>",
  }], chartLayout({
    margin: wide, ...sized(paperWidth),
    shapes: [...eventLines(), ...betweenRows.map((shape) => ({ ...shape, line }))],
    xaxis: timeAxis(),
    yaxis: axis("", { autorange: "reversed", tickmode: nNodes <= 25 ? "array" : "auto",
      tickvals: names.map((_, i) => i), ticktext: names.map((name) => shortText(name, 8)),
      showticklabels: nNodes <= 25, ticks: "" }),
  }), stillConfig);
};

const drawScan = () => Plotly.react("scan", [{
  x: data.scan.times, y: data.scan.values, mode: "lines", line: { color: colour("ratio"), width: 1.5 },
  hovertemplate: "%{x}: %{y:.2f}<extra></extra>",
}], chartLayout({
  margin: wide, ...sized(paperWidth),
  shapes: [...eventLines(), { type: "line", xref: "paper", yref: "y", x0: 0, x1: 1, y0: 1, y1: 1,
    line: { color: colour("target"), width: 1.5, dash: "dash" } }],
  xaxis: timeAxis(), yaxis: axis("", { rangemode: "tozero" }),
}), stillConfig);

// Single values are noise: the map shows means over the last window.
const meanBefore = (row, column) => {
  const last = data.steps[column];
  let sum = 0, n = 0;
  for (let c = column; c >= 0 && data.steps[c] > last - data.window; c -= 1) {
    sum += row[c];
    n += 1;
  }
  return sum / n;
};

// The changes of each node up to a step.
const changedBy = (step) => {
  const since = new Map();
  data.events.forEach((event) => event.onsets.forEach(([node, onset]) => {
    if (onset <= step) since.set(node, onset);
  }));
  return since;
};

const drawMap = () => {
  const { x, y } = data.map;
  const column = Number(slider.value);
  // A column stands for all of its times.
  const last = column + 1 < nColumns ? data.steps[column + 1] - 1 : data.n_times - 1;
  const values = panelOf(shownFeature()).map((row) => meanBefore(row, column));
  const since = changedBy(last);
  const size = nNodes > 1500 ? 6 : nNodes > 300 ? 9 : nNodes > 100 ? 11 : 14;
  const changed = data.nodes.map((_, i) => since.has(i));
  byId("now").textContent = `${data.times[column]}`;
  byId("map-caption").textContent = `${data.map.caption} Colours: the mean over the last `
    + `${data.window} times. Ringed nodes have changed by then: ${since.size} of ${nNodes}.`;
  return Plotly.react("map", [{
    x, y, mode: "markers", hoverinfo: "text",
    hovertext: data.nodes.map((name, i) => `${shortText(name, 60)}<br>${minus(values[i].toFixed(1))} standard deviations`
      + (changed[i] ? "<br>has changed" : "")),
    marker: { size: changed.map((is) => (is ? size + 3 : size)), color: values, cmin: -data.reach / 2,
      cmax: data.reach / 2, colorscale: valueScale(), colorbar: colourBar("std. dev."),
      line: { color: changed.map((is) => colour(is ? "ink" : "behind")),
        width: changed.map((is) => (is ? 3 : 0.8)) } },
  }], mapLayout(data.map, 92, { shapes: edgeShapes(data.map) }), { ...chartConfig, scrollZoom: false });
};

const redraw = () => { drawPanel(); drawScan(); drawMap(); };
const showStep = (step) => {
  let column = 0;
  while (column + 1 < nColumns && data.steps[column + 1] <= step) column += 1;
  slider.value = column;
  if (window.Plotly) drawMap();
};

let timer = null;
const stop = () => {
  clearInterval(timer);
  timer = null;
  playButton.textContent = "Play";
  playButton.setAttribute("aria-pressed", "false");
};
const play = () => {
  if (Number(slider.value) >= nColumns - 1) slider.value = 0;
  timer = setInterval(() => {
    slider.value = Number(slider.value) + Math.max(1, Math.round(nColumns / 100));
    drawMap();
    if (Number(slider.value) >= nColumns - 1) stop();
  }, 150);
  playButton.textContent = "Pause";
  playButton.setAttribute("aria-pressed", "true");
};

// The map begins at the end, where all changes show.
slider.value = nColumns - 1;
playButton.addEventListener("click", () => (timer === null ? play() : stop()));
slider.addEventListener("input", () => { stop(); drawMap(); });
featureBox.addEventListener("change", () => { drawPanel(); drawMap(); });
document.querySelectorAll(".findings button").forEach((button) => button.addEventListener("click", () => {
  stop();
  showStep(data.events[Number(button.dataset.event)].step);
  byId("map-heading").scrollIntoView();
}));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
addEventListener("beforeprint", () => { printing = true; redraw(); });
addEventListener("afterprint", () => { printing = false; redraw(); });
document.addEventListener("charts-ready", () => {
  redraw();
  document.documentElement.dataset.ready = Math.round(performance.now());
});
