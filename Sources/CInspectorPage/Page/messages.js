// The messages of a WebSocket, of server-sent events and of gRPC.
import { bytes, clock, dialog, empty, make, table } from "./dom.js";
import { get } from "./api.js";
import { withSecrets } from "./secrets.js";
import { hexText } from "./hex.js";
import { prettyJson } from "./parse.js";

const mostMessages = 2000, mostRow = 300, mostHex = 65536, mostText = 400000;

/** Fills `box` with the last messages, if still `isCurrent()` when they are read. */
export async function showMessages(box, capture, isCurrent) {
  try {
    const { messages } = await get(withSecrets(`/v1/captures/${capture.id}/messages`, capture.id));
    if (!isCurrent()) return;
    const shown = messages.slice(-mostMessages);
    const isAtEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 40;
    const isCut = messages.length > shown.length;
    box.replaceChildren(
      isCut ? make("p.note", `The last ${shown.length} of ${messages.length} are shown.`) : "",
      messages.length ? table(["time", "", "#size", "message"], shown.map(messageRow)) : empty("No messages yet"),
    );
    if (isAtEnd && capture.state === "open") box.scrollTop = box.scrollHeight;
  } catch (error) {
    if (error.name !== "AbortError") box.replaceChildren(empty("The messages cannot be shown", error.message));
  }
}

/** The content of a message in one line. */
export function messageText(message) {
  if (message.opcode === 8) return closeText(message);
  if (message.opcode === 2) return hexLine(bytesOf(message), message.size);
  if (message.opcode === 9 || message.opcode === 10) {
    return { 9: "ping ", 10: "pong " }[message.opcode] + (message.data ?? "");
  }
  if (message.type === "grpc" && message.fields) return message.fields.map(grpcField).join("  ");
  if (message.encoding === "base64") return "binary, " + bytes(message.size);
  return message.data ?? "";
}

/** The code of a close, and its reason. RFC 6455 §7.1.5. */
const closeText = ({ close }) => close ? ("close " + close.code + " " + close.reason).trim() : "close, without a code";

const mostHexLine = 48;

/** The first bytes in hexadecimal, and their number if there are more. */
function hexLine(data, size) {
  const shown = [...data.subarray(0, mostHexLine)].map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
  return size > mostHexLine ? `${shown} … (${bytes(size)})` : shown || "empty";
}

/** The bytes of a message, which is text or Base64. */
function bytesOf({ data, encoding }) {
  if (encoding !== "base64") return new TextEncoder().encode(data ?? "");
  return Uint8Array.from(atob(data), (char) => char.charCodeAt(0));
}

function grpcField({ number, value }) {
  const text = Array.isArray(value) ? JSON.stringify(value) : value.base64 ?? value;
  return number + ": " + text;
}

function messageRow(message, place) {
  const isSent = message.type === "send" || message.direction === "send";
  const text = messageText(message);
  const head = [message.event, message.id && "id " + message.id].filter(Boolean).join(", ");
  const short = text.length > mostRow ? text.slice(0, mostRow) + " …" : text;
  const open = () => dialog("Message " + (place + 1), make("pre.message", wholeText(message, text)));
  const key = (event) => {
    if (event.key !== "Enter") return;
    event.stopPropagation();
    open();
  };
  const direction = isSent
    ? make("td.up", { title: "from the client" }, "↑")
    : make("td.down", { title: "to the client" }, "↓");
  return make(
    "tr.message",
    { onclick: open, tabindex: 0, onkeydown: key },
    make("td.quiet", clock(message.time)),
    direction,
    make("td.number", bytes(message.size)),
    make("td.value", head ? make("b", head + "  ") : null, short),
  );
}

function wholeText(message, text) {
  if (message.opcode === 8) return text;
  if (message.encoding !== "base64" && message.opcode !== 2) return prettyJson(text).slice(0, mostText);
  const data = bytesOf(message);
  return hexText(data, 0, Math.min(data.length, mostHex), ".");
}
