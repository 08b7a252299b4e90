// The request beside its response: the fields of each above its content.
import { make } from "./dom.js";
import { halfFields, requestLine } from "./fields.js";
import { showSides } from "./sides.js";
import { reason } from "./why.js";

/** Fills `box` with both halves, while `isCurrent()`. */
export function showPair(box, capture, { isCurrent }) {
  const why = reason(capture);
  const halves = [
    half(capture, "request", "Request", requestLine(capture)),
    half(capture, "response", "Response", responseLine(capture)),
  ];
  box.replaceChildren(
    why ? make("p.why" + (why.isBad ? ".bad" : ""), why.text) : "",
    make("div.pair", halves.map(({ element }) => element)),
  );
  halves.forEach(({ name, content }) => showSides(content, capture, name, isCurrent));
}

function half(capture, name, title, line) {
  const content = make("div.halfcontent");
  const element = make(
    "section.half",
    { "aria-label": title },
    make("h3", title),
    make("p.summary", line),
    halfFields(capture, name),
    content,
  );
  return { name, element, content };
}

const responseLine = ({ status, state }) => status ? String(status) : state === "open" ? "in progress" : "none";
