const nodes = data.nodes;
const nNodes = nodes.label.length;
const nameOf = (i) => (nodes.name ? nodes.name[i] : nodes.label[i]);
// The label too, where it differs from the name.
const fullName = (i) =>
  nameOf(i) === nodes.label[i] ? nameOf(i) : `${nameOf(i)} (${nodes.label[i]})`;
const divergenceText = (i) =>
  nodes.divergence[i] === null ? "not estimated"
    : minus(nodes.divergence[i].toFixed(3).replace(/^-(0\.0+)$/, "$1"))
      + (nodes.near_ceiling.includes(i) ? " (near its ceiling)" : "");
// One verdict for every node: map, table, panel and counts repeat it.
const { verdicts } = data;
const isChanged = (i) => verdicts.state[i] === 2;
const verdictOf = (i) => verdicts.brief[verdicts.state[i]];
const tested = verdicts.by !== "size";
const pValueTitle = verdicts.by === "exploration" ? "p-value (exploratory)" : "adjusted p-value";
const sentenceOf = (text) => `${text[0].toUpperCase()}${text.slice(1)}.`;
const pValueText = (i) => {
  const p = verdicts.adjusted[i];
  return p === null ? "not tested" : number(p, 3, 3);
};

// One feature has a direction: purple fell, green rose; blue and orange are the two samples.
// Otherwise colours show the strength.
const directionScale = () => (isDark()
  ? [[0, "#c79bd8"], [0.5, "#2d3340"], [1, "#6fcf86"]]
  : [[0, "#762a83"], [0.25, "#c2a5cf"], [0.5, "#f7f7f7"], [0.75, "#a6dba0"], [1, "#1b7837"]]);
const mapColours = () => {
  if (!data.direction) {
    return { of: (i) => nodes.divergence[i], cmin: 0, cmax: data.scale.top, colorscale: scaleOf(), title: "divergence" };
  }
  const { change, largest, unit } = data.direction;
  return { of: (i) => change[i], cmin: -largest, cmax: largest, colorscale: directionScale(),
    title: unit ? asText(unit) : "change" };
};
const changeWords = (i) => {
  const { change, feature, unit } = data.direction;
  return `<br>${asText(feature)} ${signed(change[i])}${unit ? ` ${asText(unit)}` : ""}${nodes.smoothed ? ", with neighbours" : ""}`;
};

// The other nodes are open circles without a colour.
const isColoured = (i) => nodes.divergence[i] !== null && verdicts.state[i] !== 0;

const drawMap = (selected, showEdges) => {
  const { x, y } = data.map;
  const colours = mapColours();
  const known = [], unknown = [];
  for (let i = 0; i < nNodes; i += 1) (isColoured(i) ? known : unknown).push(i);
  // The most changed are drawn last, on top of the others.
  known.sort((a, b) => nodes.divergence[a] - nodes.divergence[b]);
  const pick = (values, which) => which.map((i) => values[i]);
  const hover = (i) => `${shortText(fullName(i), 60)}${data.direction ? changeWords(i) : ""}<br>divergence ${divergenceText(i)}`
    + `<br>${verdictOf(i)}${tested ? `, ${pValueTitle} ${pValueText(i)}` : ""}`;
  const size = nNodes > 1500 ? 5 : nNodes > 300 ? 8 : nNodes > 100 ? 10 : 13;
  const shapes = showEdges ? edgeShapes(data.map) : [];
  const traces = [
    { x: pick(x, unknown), y: pick(y, unknown), customdata: unknown, mode: "markers",
      hoverinfo: "text", hovertext: unknown.map(hover),
      marker: { symbol: "circle-open", size, color: colour("quiet"), line: { width: 1.5 } } },
    { ...barTrace("map"), x: pick(x, known), y: pick(y, known), customdata: known, mode: "markers",
      hoverinfo: "text", hovertext: known.map(hover),
      marker: {
        size, color: known.map(colours.of), cmin: colours.cmin, cmax: colours.cmax, colorscale: colours.colorscale,
        line: {
          color: known.map((i) => colour(tested && isChanged(i) ? "ink" : "quiet")),
          width: known.map((i) => (tested && isChanged(i) ? 2.2 : 0.8) * (nNodes > 1500 ? 0.5 : 1)),
        },
        showscale: known.length > 0, colorbar: mapBar("map", colours.title),
      } },
  ];
  if (selected !== null) {
    traces.push({ x: [x[selected]], y: [y[selected]], mode: "markers+text", hoverinfo: "skip",
      text: [shortText(nameOf(selected), 28)], textposition: "top center",
      textfont: { size: 13, color: colour("ink") }, cliponaxis: false,
      marker: { symbol: "circle-open", size: size + 9, color: colour("ink"), line: { width: 2.5 } } });
  }
  return Plotly.react("map", traces, mapLayout(data.map, "bar", { shapes }), { ...chartConfig, scrollZoom: false });
};

// Explains what this map shows, and nothing else.
const mapCaption = () => {
  const { top, capped } = data.scale;
  const coloured = Array.from({ length: nNodes }, (_, i) => i).filter(isColoured);
  const said = [];
  if (coloured.length && data.direction) {
    said.push(`Colours: change of the mean of ${data.direction.feature}${data.direction.unit ? ` in ${data.direction.unit_in_words}` : ""}, green up, purple down${nodes.smoothed ? ", estimated with the help of neighbours" : ""}.`);
    if (data.direction.clipped) said.push(`Changes beyond ${number(data.direction.largest)} have the last colour.`);
  } else if (coloured.length) {
    said.push(`Colours: divergence, from 0 to ${number(top)}.`);
    if (capped) said.push(`${capped === 1 ? `One ${data.noun[0]} lies` : `${capped} ${data.noun[1]} lie`} above and share${capped === 1 ? "s" : ""} the last colour.`);
    if (coloured.some((i) => nodes.divergence[i] < 0)) said.push("Estimates below 0 are coloured as 0.");
  }
  if (verdicts.state.includes(0)) said.push("Open circles: these data cannot say.");
  if (tested && coloured.some(isChanged)) said.push(`Rings: ${verdicts.by === "exploration" ? `${data.noun[1]} that stand out (exploratory)` : "changed significantly"}.`);
  said.push(`Select ${data.noun[0] === "node" ? "a node" : "one"} to see ${coloured.length ? "how it changed" : "its samples"}.`, data.map.caption);
  return said.join(" ");
};

const drawSelection = () => data.selection.forEach((chart, place) => {
  const target = `selection-${place}`;
  const xAxis = axis(chart.x_name, { type: "category" });
  if (chart.kind === "line") {
    const marked = chart.x.map((_, i) => i === chart.selected_x);
    Plotly.react(target, [{
      x: chart.x, y: chart.y, mode: "lines+markers", line: { color: colour("quiet"), width: 2 },
      marker: { size: marked.map((m) => (m ? 14 : 8)), symbol: marked.map((m) => (m ? "star" : "circle")),
        color: marked.map((m) => colour(m ? "ink" : "quiet")) },
      hovertemplate: "%{x}: %{y:.4g}<extra></extra>",
    }], chartLayout({ ...sized(paperWidth / 2 - 20), xaxis: xAxis, yaxis: axis("mean score") }), stillConfig);
    return;
  }
  const traces = [{
    type: "heatmap", x: chart.x, y: chart.y, z: chart.z, zmin: chart.low, zmax: chart.high,
    colorscale: scaleOf(), texttemplate: "%{z:.3f}", xgap: 2, ygap: 2,
    textfont: { size: 11 },
    hovertemplate: `${chart.x_name} %{x}<br>${chart.y_name} %{y}<br>score %{z:.4g}<extra></extra>`,
    colorbar: { title: { text: "score", side: "right" }, thickness: 10, outlinewidth: 0, tickfont: { size: 10 } },
  }];
  const shapes = chart.selected_x === null ? [] : [{
    type: "rect", xref: "x", yref: "y", x0: chart.selected_x - 0.5, x1: chart.selected_x + 0.5,
    y0: chart.selected_y - 0.5, y1: chart.selected_y + 0.5, line: { color: colour("ink"), width: 3 },
  }];
  Plotly.react(target, traces, chartLayout({
    ...sized(paperWidth / 2 - 20), xaxis: { ...xAxis, showgrid: false }, yaxis: axis(chart.y_name, { type: "category", showgrid: false }), shapes,
  }), stillConfig);
});
