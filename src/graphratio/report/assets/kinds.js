// Kinds of change: which nodes, how their ratios look, and the links that were cut.
// None of them is a colour of the samples or of a direction; the map has shapes as well.
const kindColours = () => (isDark()
  ? ["#ff7b72", "#ddaa33", "#b9b95a", "#b8937c", "#f0a0a8", "#9fb0c3"]
  : ["#991f1f", "#c98a00", "#7f7f2a", "#775544", "#cc6677", "#4d5a6a"]);
const kindShapes = ["circle", "square", "diamond", "triangle-up", "cross", "star"];
const kindColour = (kind) => (kind === 0 ? colour("behind") : kindColours()[(kind - 1) % 6]);
const kindShape = (kind) => kindShapes[Math.max(kind - 1, 0) % 6];
const kindName = (kind) => (kind === 0 ? "no change found" : data.kinds.labels[kind - 1]);

const drawKindCurves = () => data.kinds.curves.forEach((chart, place) => {
  const line = { type: "line", xref: "paper", x0: 0, x1: 1, y0: 1, y1: 1,
    line: { color: colour("quiet"), width: 1, dash: "dash" } };
  Plotly.react(`kinds-curve-${place}`, chart.y.map((ratio, k) => ({
    x: chart.x, y: ratio, mode: "lines", name: kindName(k + 1),
    line: { color: kindColour(k + 1), width: 2.5 },
    hovertemplate: `%{x:.4g}: %{y:.3g}<extra>${kindName(k + 1)}</extra>`,
  })), chartLayout({
    ...sized(paperWidth / 2 - 20), shapes: [line], xaxis: axis(`${shortText(chart.feature, Math.max(14, 40 - chart.units.length))}${chart.units}`, levelTicks(chart.levels)),
    yaxis: axis("ratio", { rangemode: "tozero" }),
  }), stillConfig);
});

const drawKindMap = () => {
  const { x, y } = data.map;
  const { kind, cut, labels } = data.kinds;
  const size = nNodes > 1500 ? 5 : nNodes > 300 ? 8 : 11;
  // Nodes without a finding below the others.
  const traces = [0, ...labels.map((_, k) => k + 1)].map((k) => {
    const members = kind.flatMap((other, i) => (other === k ? [i] : []));
    return {
      x: members.map((i) => x[i]), y: members.map((i) => y[i]), customdata: members,
      mode: "markers", name: `${kindName(k)} (${members.length})`, hoverinfo: "text",
      hovertext: members.map((i) => `${shortText(fullName(i), 60)}<br>${kindName(k)}`),
      marker: { size, symbol: kindShape(k), color: kindColour(k), line: { color: colour("quiet"), width: 0.8 } },
    };
  });
  const cuts = edgeShapes({ x, y, edges: cut }).map((shape) => (
    { ...shape, line: { color: colour("ink"), width: 1.6, dash: "dot" } }));
  const kept = edgeShapes(data.map);
  // Room for all rows of the legend, also on a phone: an entry has a symbol and gaps beside its text,
  // and the axis takes some of the width.
  const legendEntry = 136;
  const legendRows = Math.ceil((labels.length + 1) / Math.max(1, Math.floor((widthOf("kinds-map") - 64) / (legendEntry + 45))));
  Plotly.react("kinds-map", traces, mapLayout(data.map, 12, {
    id: "kinds-map", top: 16 + 20 * legendRows,
    shapes: [...(data.map.edges.length / 2 <= manyEdges ? kept : []), ...cuts],
    showlegend: labels.length > 0,
    legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0, entrywidth: legendEntry, font: { size: 11 } },
  }), stillConfig);
};

const drawKinds = () => {
  if (!data.kinds) return;
  document.querySelectorAll(".swatch").forEach((swatch) => {
    swatch.style.background = kindColour(Number(swatch.dataset.kind));
    swatch.dataset.shape = kindShape(Number(swatch.dataset.kind));
  });
  drawKindCurves();
  if (byId("kinds-map")) drawKindMap();
};
