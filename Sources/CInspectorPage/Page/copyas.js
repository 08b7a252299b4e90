// A request as text for other programs. What is masked becomes a variable of the environment.

export const isMasked = value => value.includes("…");

/** Fields that the other program makes by itself. */
const own = new Set(["host", "content-length", "connection", "transfer-encoding", "te", "upgrade", "keep-alive", "proxy-connection", "proxy-authorization", "expect"]);

const variable = name => name.toUpperCase().replace(/[^A-Z0-9]+/g, "_").replace(/^(\d)/, "_$1");

/** Single quotes for a shell; a masked part is a variable. */
function shell(text, name) {
  if (isMasked(text)) return '"' + text.split("…").map(part => part.replace(/[\\"$`]/g, "\\$&")).join("${" + variable(name) + "}") + '"';
  return /^[\w@%+=:,./-]+$/.test(text) ? text : "'" + text.replaceAll("'", "'\\''") + "'";
}

function fieldsOf(capture) {
  return (capture.request.client?.headers ?? []).filter(line => !own.has(line.name.toLowerCase()) && !line.name.startsWith(":"));
}

/** The names of variables that stand for masked values, in the URL too. */
function masks(capture) {
  const found = fieldsOf(capture).filter(line => isMasked(line.value)).map(line => variable(line.name));
  if (isMasked(capture.url)) found.push("SECRET");
  return [...new Set(found)];
}

function textOf(body) {
  if (!body.length) return null;
  try { return new TextDecoder("utf-8", { fatal: true }).decode(body); } catch { return undefined; }
}

const toBase64 = body => { let text = ""; for (const byte of body) text += String.fromCharCode(byte); return btoa(text); };

const hasCoding = capture => fieldsOf(capture).some(line => line.name.toLowerCase() === "accept-encoding" && /gzip|br|deflate|zstd/.test(line.value));

function curl(capture, body) {
  const text = textOf(body), parts = ["curl"];
  const names = masks(capture);
  if (capture.method === "HEAD") parts.push("--head");
  else if (capture.method !== (body.length ? "POST" : "GET")) parts.push("-X " + shell(capture.method));
  if (hasCoding(capture)) parts.push("--compressed");
  if (capture.version === "HTTP/2") parts.push("--http2");
  for (const line of fieldsOf(capture)) {
    if (line.name.toLowerCase() === "accept-encoding" && hasCoding(capture)) continue;
    // curl sends a field without value by a semicolon.
    parts.push("-H " + (line.value === "" ? shell(line.name + ";") : shell(line.name + ": " + line.value, line.name)));
  }
  // curl adds these by itself.
  for (const name of ["User-Agent", "Accept"]) if (!fieldsOf(capture).some(line => line.name.toLowerCase() === name.toLowerCase())) parts.push("-H '" + name + ":'");
  let before = "";
  if (text === undefined) { before = "printf %s " + toBase64(body) + " | base64 -d | "; parts.push("--data-binary @-"); }
  else if (text !== null) parts.push("--data-raw " + shell(text, "SECRET"));
  if (text !== null && !fieldsOf(capture).some(line => line.name.toLowerCase() === "content-type")) parts.push("-H 'Content-Type:'");
  parts.push(shell(capture.url, "SECRET"));
  return (names.length ? "# set " + names.join(", ") + "\n" : "") + before + parts.join(" \\\n  ");
}

function httpie(capture, body) {
  const text = textOf(body);
  const parts = ["http --ignore-stdin", shell(capture.method), shell(capture.url, "SECRET")];
  for (const line of fieldsOf(capture)) parts.push(shell(line.name + ":" + line.value, line.name));
  if (text) parts.push("--raw " + shell(text, "SECRET"));
  return parts.join(" \\\n  ");
}

function fetchCode(capture, body) {
  const text = textOf(body);
  const mask = value => isMasked(value) ? "`" + value.replace(/[`\\$]/g, "\\$&").replaceAll("…", "${secret}") + "`" : JSON.stringify(value);
  const lines = fieldsOf(capture).map(line => `    [${JSON.stringify(line.name)}, ${mask(line.value)}],`);
  const content = text === null ? "" : text === undefined ? `\n  body: Uint8Array.from(atob(${JSON.stringify(toBase64(body))}), c => c.charCodeAt(0)),` : `\n  body: ${mask(text)},`;
  return `await fetch(${mask(capture.url)}, {\n  method: ${JSON.stringify(capture.method)},\n  headers: [\n${lines.join("\n")}\n  ],${content}\n});`;
}

function swift(capture, body) {
  const text = textOf(body);
  const quote = value => '"' + value.replace(/[\\"]/g, "\\$&").replaceAll("\n", "\\n").replaceAll("\r", "\\r").replaceAll("…", "\\(secret)") + '"';
  const lines = fieldsOf(capture).map(line => `request.addValue(${quote(line.value)}, forHTTPHeaderField: ${quote(line.name)})`);
  const content = text === null ? [] : text === undefined ? [`request.httpBody = Data(base64Encoded: "${toBase64(body)}")`] : [`request.httpBody = Data(${quote(text)}.utf8)`];
  return ["import Foundation", "", `var request = URLRequest(url: URL(string: ${quote(capture.url)})!)`, `request.httpMethod = ${quote(capture.method)}`, ...lines, ...content,
    "let (data, response) = try await URLSession.shared.data(for: request)"].join("\n");
}

export const formats = { curl, fetch: fetchCode, Swift: swift, HTTPie: httpie, HAR: null, URL: capture => capture.url };
