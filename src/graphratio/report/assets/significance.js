// The map of a test: colour is the effect size, a ring marks significant nodes.
const drawMap = () => {
  const { x, y, edges } = data.map;
  const places = data.nodes.map((_, i) => i);
  const size = places.length > 1500 ? 5 : places.length > 300 ? 8 : places.length > 100 ? 10 : 13;
  const scale = isDark()
    ? [[0, "#2d3340"], [0.2, "#3b528b"], [0.45, "#21918c"], [0.7, "#5ec962"], [1, "#fde725"]]
    : [[0, "#f7f3d0"], [0.25, "#a8dba0"], [0.5, "#3fb0a0"], [0.75, "#2c6a95"], [1, "#33115c"]];
  const known = data.effect.filter((value) => value !== null);
  Plotly.react("map", [{
    x, y, mode: "markers", hoverinfo: "text",
    hovertext: places.map((i) => `${shortText(data.nodes[i], 40)}<br>effect size ${number(data.effect[i], 2)}`
      + `<br>${asText(data.verdict[i])}`),
    marker: {
      size, color: data.effect.map((value) => value ?? 0), cmin: 0, cmax: Math.max(1, ...known), colorscale: scale,
      symbol: places.map((i) => (data.effect[i] === null ? "circle-open" : "circle")),
      line: {
        color: places.map((i) => colour(data.rejected[i] ? "target" : "quiet")),
        width: places.map((i) => (data.rejected[i] ? 2.5 : 0.8)),
      },
      colorbar: { title: { text: "effect size", side: "top", font: { size: 12 } }, thickness: 12,
        outlinewidth: 0, len: 0.9, tickfont: { size: 11 } },
    },
  }], mapLayout(data.map, 92, { shapes: edges.length <= 8000 ? edgeShapes(data.map) : [] }), stillConfig);
};

byId("search").addEventListener("input", (event) => {
  const query = event.target.value.trim().toLowerCase();
  document.querySelectorAll("#nodes tbody tr").forEach((row) => {
    row.hidden = query !== "" && !row.firstElementChild.textContent.toLowerCase().includes(query);
  });
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawMap);
addEventListener("beforeprint", () => { printing = true; drawMap(); });
addEventListener("afterprint", () => { printing = false; drawMap(); });
document.addEventListener("charts-ready", () => {
  drawMap();
  document.documentElement.dataset.ready = Math.round(performance.now());
});
