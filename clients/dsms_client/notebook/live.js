// Draws the frames of dsms_client.notebook: a chart of lines and a table.  Nothing is fetched from anywhere, and text of
// rows is only ever set as text.

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 600, HEIGHT = 140, PAD = 6;
const COLORS = ["#4269d0", "#efb118", "#ff725c", "#6cc5b0", "#3ca951", "#ff8ab7", "#a463f2", "#97bbf5"];

function made(name, text, style) {
  const node = document.createElement(name);
  if (text !== undefined) node.textContent = text;
  if (style !== undefined) node.setAttribute("style", style);
  return node;
}

function drawn(name, attributes) {
  const node = document.createElementNS(SVG, name);
  for (const key of Object.keys(attributes)) node.setAttribute(key, attributes[key]);
  return node;
}

// The places of points in the picture; all lines share its axes.
export function places(lines) {
  const all = lines.flatMap((line) => line.points);
  if (!all.length) return lines.map(() => "");
  const least = (k) => all.reduce((a, p) => Math.min(a, p[k]), Infinity);
  const most = (k) => all.reduce((a, p) => Math.max(a, p[k]), -Infinity);
  const scale = (k, size) => {
    const from = least(k), span = most(k) - from;
    return (value) => PAD + (span ? ((value - from) / span) * (size - 2 * PAD) : (size - 2 * PAD) / 2);
  };
  const x = scale(0, WIDTH), y = scale(1, HEIGHT);
  const place = (p) => `${x(p[0]).toFixed(1)},${(HEIGHT - y(p[1])).toFixed(1)}`;
  return lines.map((line) => line.points.map(place).join(" "));
}

function chart(lines) {
  const shown = lines.filter((line) => line.points.length > 1);
  const box = made("div");
  if (!shown.length) return box;
  const picture = drawn("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: "100%", style: "max-width:600px" });
  places(shown).forEach((points, k) => {
    const stroke = COLORS[k % COLORS.length];
    picture.appendChild(drawn("polyline", { points, stroke, fill: "none", "stroke-width": "1.5" }));
  });
  box.appendChild(picture);
  shown.forEach((line, k) => {
    const [, value] = line.points[line.points.length - 1];
    box.appendChild(made("span", `${line.name}: ${value}  `, `color:${COLORS[k % COLORS.length]};font-size:80%`));
  });
  return box;
}

function table(frame) {
  const out = made("table"), head = made("tr");
  const side = (k) => (frame.numbers.includes(k) ? "text-align:right" : "text-align:left");
  frame.columns.forEach((name, k) => head.appendChild(made("th", name, side(k))));
  out.appendChild(head);
  for (const row of frame.rows) {
    const line = made("tr");
    row.forEach((text, k) => line.appendChild(made("td", text, side(k))));
    out.appendChild(line);
  }
  return out;
}

function note(query, frame) {
  const rows = frame.kept ? `${frame.count} rows` : `${frame.count} rows so far`;
  const cut = frame.count > frame.rows.length ? `, ${frame.rows.length} shown` : "";
  return `${query}: ${rows}${cut}${frame.at === null ? "" : `, as of ${frame.at}`}`;
}

function render({ model, el }) {
  const draw = () => {
    const frame = model.get("frame"), problem = model.get("problem"), query = model.get("query");
    const ready = frame && frame.columns;
    const parts = ready ? [made("div", note(query, frame)), chart(frame.lines), table(frame)] : [made("div", query)];
    if (problem) parts.push(made("div", problem, "color:#c00;white-space:pre-wrap"));
    el.replaceChildren(...parts);
  };
  const names = ["change:frame", "change:problem"];
  for (const name of names) model.on(name, draw);
  draw();
  return () => names.forEach((name) => model.off(name, draw));
}

export default { render };
