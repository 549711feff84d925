// The map of a test: colour is the effect size, a ring marks significant nodes.
const drawMap = () => {
  const { x, y, edges } = data.map;
  const places = data.nodes.map((_, i) => i);
  const size = places.length > 1500 ? 5 : places.length > 300 ? 8 : places.length > 100 ? 10 : 13;
  const known = data.effect.filter((value) => value !== null);
  Plotly.react("map", [{
    x, y, mode: "markers", hoverinfo: "text",
    hovertext: places.map((i) => `${shortText(data.nodes[i], 40)}<br>effect size ${number(data.effect[i], 2)}`
      + `<br>${asText(data.verdicts.words[i])}`),
    marker: {
      size, color: data.effect.map((value) => value ?? 0), cmin: 0, cmax: Math.max(1, ...known), colorscale: scaleOf(),
      symbol: places.map((i) => (data.effect[i] === null ? "circle-open" : "circle")),
      line: {
        color: places.map((i) => colour(data.verdicts.state[i] === 2 ? "ink" : "behind")),
        width: places.map((i) => (data.verdicts.state[i] === 2 ? 2.2 : 0.8)),
      },
      colorbar: mapBar("map", "effect size"),
    },
  }], mapLayout(data.map, "bar", { shapes: edges.length <= 8000 ? edgeShapes(data.map) : [] }), stillConfig);
};

onePage(drawMap);
