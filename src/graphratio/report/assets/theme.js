// Colours of the charts follow the style sheet, so that light, dark and print agree.
const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);

// The object is live: it follows a change of the colour scheme.
const rootStyle = getComputedStyle(document.documentElement);
const colour = (name) => rootStyle.getPropertyValue(`--${name}`).trim();

let printing = false;
const isDark = () => !printing && matchMedia("(prefers-color-scheme: dark)").matches;

// Plotly reads a little markup in texts; names of nodes and features are only ever text.
const asText = (value) =>
  String(value).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

const shortText = (value, most) => {
  const text = String(value);
  return asText(text.length > most ? `${text.slice(0, most - 1)}…` : text);
};

// Formatters are slow to make and fast to use.
const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const formatters = new Map();
const rounded = (digits, least) => {
  const key = `${digits} ${least}`;
  if (!formatters.has(key)) {
    formatters.set(key, new Intl.NumberFormat("en-US",
      { maximumSignificantDigits: digits, minimumSignificantDigits: least }));
  }
  return formatters.get(key);
};

// The sign of a number as plotly writes it.
const minus = (text) => text.replace(/^-/, "\u2212");

const number = (value, digits = 3, least = 1) => {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e9)) return minus(value.toExponential(2));
  return minus((size >= 10 ** digits ? whole : rounded(digits, least)).format(value));
};

const element = (tag, attributes = {}, ...children) => {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "class") node.className = value;
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
};

const axis = (title, more = {}) => ({
  title: { text: title, font: { size: 12 }, standoff: 8 },
  gridcolor: colour("line"), linecolor: colour("line"), zeroline: false,
  tickfont: { size: 11, color: colour("quiet") }, automargin: true, ...more,
});

const chartLayout = (more = {}) => ({
  paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
  font: { family: "system-ui, sans-serif", size: 12, color: colour("ink") },
  margin: { l: 50, r: 12, t: 12, b: 40 }, showlegend: false,
  modebar: { bgcolor: "rgba(0,0,0,0)", color: colour("quiet"), activecolor: colour("ink") },
  hoverlabel: { bgcolor: colour("raised"), bordercolor: colour("line"), font: { color: colour("ink") } },
  ...more,
});

// A page is being printed before its layout is: charts need the width of the paper, in pixels.
const paperWidth = 670;
const sized = (width) => (printing ? { autosize: false, width } : { autosize: true });

const chartConfig = {
  displaylogo: false, responsive: true,
  // Named one by one, and no server: plotly's own set has a button that uploads the chart.
  plotlyServerURL: "",
  modeBarButtons: [["toImage"], ["zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d"]],
};
const stillConfig = { ...chartConfig, displayModeBar: false };

// All edges of a map as one path: as a line trace each would be an element of its own.
const edgeShapes = ({ x, y, edges }) => {
  const steps = [];
  for (let e = 0; e < edges.length; e += 2) {
    const [a, b] = [edges[e], edges[e + 1]];
    steps.push(`M${x[a]},${y[a]}L${x[b]},${y[b]}`);
  }
  return steps.length
    ? [{ type: "path", path: steps.join(""), layer: "below", line: { color: colour("edge"), width: 1 } }] : [];
};

// Land and borders behind a map, and boxes for nodes that are far away.
const backdrop = ({ insets, outlines }) => {
  const below = (path, line, fillcolor) => (path
    ? [{ type: "path", path, layer: "below", line, ...(fillcolor ? { fillcolor } : {}) }] : []);
  const parts = ({ land, borders }) => [
    ...below(land, { color: colour("coast"), width: 0.8 }, colour("land")),
    ...below(borders, { color: colour("coast"), width: 0.6 }),
  ];
  const boxes = insets.flatMap(([x0, x1, y0, y1], i) => [
    { type: "rect", x0, x1, y0, y1, layer: "below", line: { width: 0 }, fillcolor: colour("paper") },
    ...(outlines.length ? parts(outlines[i + 1]) : []),
    { type: "rect", x0, x1, y0, y1, layer: "below", line: { color: colour("quiet"), width: 1 } },
  ]);
  return [...(outlines.length ? parts(outlines[0]) : []), ...boxes];
};

// The colour bar of a map: beside it, or below it where there is little room.
const narrowMap = 560;
const widthOf = (id) => (printing ? paperWidth : byId(id).clientWidth);
const isNarrow = (id) => widthOf(id) < narrowMap;
// A trace with another bar is another trace: plotly would leave parts of the old bar behind.
const barTrace = (id) => ({ uid: isNarrow(id) ? "bar-below" : "bar-beside" });
const mapBar = (id, title) => ({
  title: { text: title, side: "top", font: { size: 12 } }, thickness: 12, outlinewidth: 0,
  tickfont: { size: 11 },
  // Below the numbers of an axis, if there is one.
  ...(isNarrow(id)
    ? { orientation: "h", y: data.map.kind === "plane" ? -0.09 : -0.02, yanchor: "top", len: 0.86, x: 0.45 }
    : { len: 0.9 }),
});

// `right` is the room beside the map in pixels, or "bar" for a `mapBar`. `more.shapes` lie between what
// is behind the map and its nodes, and `more.top` is the room above it, in which the buttons are.
const mapLayout = (map, right, { id = "map", top = 34, ...more }) => {
  const { kind, aspect, frame } = map;
  const narrow = isNarrow(id), plane = kind === "plane", bar = right === "bar";
  const margin = { l: plane ? 52 : 12, r: !bar ? right : narrow ? 12 : 104, t: top,
    b: (plane ? 36 : 12) + (bar && narrow ? 66 : 0) };
  // As high as the map is at this width, within limits: no empty bands.
  const shape = ((frame[3] - frame[2]) * aspect) / (frame[1] - frame[0] || 1);
  const high = shape * (widthOf(id) - margin.l - margin.r) + margin.t + margin.b;
  byId(id).style.height = `${Math.round(Math.min(Math.max(high, 260), 620, 0.8 * Math.max(innerHeight, 560)))}px`;
  const bare = { showgrid: false, zeroline: false, showline: false, showticklabels: false, ticks: "" };
  const axes = { automargin: false, ...(kind === "plane" ? {} : bare) };
  return chartLayout({
    // Fixed margins: finding them would draw everything twice.
    margin: { ...margin, autoexpand: false },
    ...sized(paperWidth), hovermode: "closest", dragmode: "pan", uirevision: "map",
    xaxis: axis("", { ...axes, range: frame.slice(0, 2) }),
    yaxis: axis("", { ...axes, range: frame.slice(2), scaleanchor: "x", scaleratio: aspect }),
    ...more,
    shapes: [...backdrop(map), ...(more.shapes ?? [])],
  });
};

// Low values recede into the page and high ones stand out, in light and in dark.
const scaleOf = () => (isDark()
  ? [[0, "#2d3340"], [0.2, "#3b528b"], [0.45, "#21918c"], [0.7, "#5ec962"], [1, "#fde725"]]
  : [[0, "#f7f3d0"], [0.25, "#a8dba0"], [0.5, "#3fb0a0"], [0.75, "#2c6a95"], [1, "#33115c"]]);

// Draw again when the colours of the page change, and for paper.
const redrawWith = (draw) => {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  addEventListener("beforeprint", () => { printing = true; draw(); });
  addEventListener("afterprint", () => { printing = false; draw(); });
};
