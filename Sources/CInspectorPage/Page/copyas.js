// A request as text for other programs. Masked values become variables of the environment.

export const isMasked = (value) => value.includes("…");

/** Fields that the other program makes by itself. */
const own = new Set([
  "host",
  "content-length",
  "connection",
  "transfer-encoding",
  "te",
  "upgrade",
  "keep-alive",
  "proxy-connection",
  "proxy-authorization",
  "expect",
]);

/** Fields whose variables have a short name. */
const known = new Set(["AUTHORIZATION", "PROXY_AUTHORIZATION", "COOKIE", "X_API_KEY"]);

/**
 * The variable of the environment for a masked value. A request chooses the names of its fields, so each variable has a
 * prefix: it names no variable that a user may have.
 */
const variable = (name) => {
  const word = name.toUpperCase().replace(/[^A-Z0-9]+/g, "_");
  return "HTTPWARE_" + (known.has(word) ? word : "FIELD_" + word);
};
const secret = "HTTPWARE_SECRET";

/**
 * The mark is the gateway's if it is a whole value, or all that follows the scheme of credentials. Elsewhere it belongs
 * to the field's own text.
 */
const isMaskedField = (value) => /^([A-Za-z]+ )?…$/.test(value);

const single = (text) => "'" + text.replaceAll("'", "'\\''") + "'";

/** A word of a shell. Single quotes keep all characters, also the ones that recall earlier commands. */
const shell = (text) => (/^[\w@%+:,./-][\w@%+=:,./-]*$/.test(text) ? text : single(text));

/** A word of a shell whose marks are a variable. */
const shellMasked = (text, name) => text.split("…").map((part) => (part ? single(part) : "")).join('"${' + name + '}"');

const shellField = (line, before, behind = line.value) =>
  isMaskedField(line.value) ? shellMasked(before + behind, variable(line.name)) : shell(before + behind);
const shellSecret = (text) => (isMasked(text) ? shellMasked(text, secret) : shell(text));

/** The URL, if it is one for a network: an imported one could name a file, or be an option. */
function urlOf(capture) {
  if (!/^(https?|wss?):\/\/[^\s]/i.test(capture.url)) throw new Error("only http and https can be copied as a command");
  return capture.url;
}

function fieldsOf(capture) {
  return (capture.request.client?.headers ?? []).filter((line) =>
    /^[\w!#$%&'*+.^`|~-]+$/.test(line.name) && !/[\r\n\0]/.test(line.value) && !own.has(line.name.toLowerCase())
  );
}

/** The variables that a copied command reads, in place of masked values. */
export const variables = (text) => [...new Set([...text.matchAll(/\$\{(HTTPWARE_\w+)\}/g)].map((found) => found[1]))];

/** The body as text; `null` if it is empty, `undefined` if a shell cannot hold it. */
function textOf(body) {
  if (!body.length) return null;
  if (body.includes(0)) return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(body);
  } catch {
    return undefined;
  }
}

const toBase64 = (body) => {
  let text = "";
  for (const byte of body) text += String.fromCharCode(byte);
  return btoa(text);
};

const hasCoding = (capture) =>
  fieldsOf(capture).some((line) =>
    line.name.toLowerCase() === "accept-encoding" && /gzip|br|deflate|zstd/.test(line.value)
  );

function curl(capture, body) {
  const text = textOf(body), parts = ["curl"], url = urlOf(capture);
  if (capture.method === "HEAD") parts.push("--head");
  else if (capture.method !== (body.length ? "POST" : "GET")) parts.push("-X " + shell(capture.method));
  if (hasCoding(capture)) parts.push("--compressed");
  if (capture.version === "HTTP/2") parts.push("--http2");
  for (const line of fieldsOf(capture)) {
    if (line.name.toLowerCase() === "accept-encoding" && hasCoding(capture)) continue;
    // curl sends a field without value by a semicolon.
    parts.push("-H " + (line.value === "" ? shell(line.name + ";") : shellField(line, line.name + ": ")));
  }
  // curl adds these by itself.
  for (const name of ["User-Agent", "Accept"]) {
    if (!fieldsOf(capture).some((line) => line.name.toLowerCase() === name.toLowerCase())) {
      parts.push("-H '" + name + ":'");
    }
  }
  let before = "";
  if (text === undefined) {
    before = "printf %s " + toBase64(body) + " | base64 -d | ";
    parts.push("--data-binary @-");
  } // With --data-raw, a body that begins with @ names no file.
  else if (text !== null) parts.push("--data-raw " + shellSecret(text));
  if (text !== null && !fieldsOf(capture).some((line) => line.name.toLowerCase() === "content-type")) {
    parts.push("-H 'Content-Type:'");
  }
  // curl makes several requests of a URL with braces or brackets.
  if (/[[\]{}]/.test(url)) parts.push("--globoff");
  parts.push("--url " + shellSecret(url));
  return before + parts.join(" \\\n  ");
}

/**
 * A field for HTTPie. Behind the colon, @ would read a file, and = a value of JSON: a backslash takes that meaning
 * away.
 */
function itemOf(line) {
  if (line.value === "") return shell(line.name + ";");
  return shellField(line, line.name + ":", line.value.replace(/^(?=[@=:])/, "\\"));
}

function httpie(capture, body) {
  const text = textOf(body);
  let before = "";
  const parts = ["http"];
  // Any other word counts as the URL.
  if (!/^[A-Za-z]+$/.test(capture.method)) throw new Error("HTTPie cannot send the method " + capture.method);
  if (text === undefined) before = "printf %s " + toBase64(body) + " | base64 -d | ";
  else parts.push("--ignore-stdin");
  if (text) parts.push("--raw=" + shellSecret(text));
  parts.push("-- " + shell(capture.method), shellSecret(urlOf(capture)), ...fieldsOf(capture).map(itemOf));
  return before + parts.join(" \\\n  ");
}

function fetchCode(capture, body) {
  const text = textOf(body);
  const template = (value) => "`" + value.replace(/[`\\$]/g, "\\$&").replaceAll("…", "${secret}") + "`";
  const mask = (value) => (isMasked(value) ? template(value) : JSON.stringify(value));
  const lines = fieldsOf(capture).map((line) =>
    `    [${JSON.stringify(line.name)}, ${
      isMaskedField(line.value) ? template(line.value) : JSON.stringify(line.value)
    }],`
  );
  const content = text === null
    ? ""
    : text === undefined
    ? `\n  body: Uint8Array.from(atob(${JSON.stringify(toBase64(body))}), c => c.charCodeAt(0)),`
    : `\n  body: ${mask(text)},`;
  return `await fetch(${mask(urlOf(capture))}, {\n  method: ${JSON.stringify(capture.method)},\n  headers: [\n${
    lines.join("\n")
  }\n  ],${content}\n});`;
}

function swift(capture, body) {
  const text = textOf(body);
  const plain = (value) => '"' + value.replace(/[\\"]/g, "\\$&").replaceAll("\n", "\\n").replaceAll("\r", "\\r") + '"';
  const quote = (value) => plain(value).replaceAll("…", "\\(secret)");
  const lines = fieldsOf(capture).map((line) =>
    `request.addValue(${isMaskedField(line.value) ? quote(line.value) : plain(line.value)}, forHTTPHeaderField: ${
      plain(line.name)
    })`
  );
  const content = text === null
    ? []
    : text === undefined
    ? [`request.httpBody = Data(base64Encoded: "${toBase64(body)}")`]
    : [`request.httpBody = Data(${quote(text)}.utf8)`];
  return [
    "import Foundation",
    "",
    `var request = URLRequest(url: URL(string: ${quote(urlOf(capture))})!)`,
    `request.httpMethod = ${plain(capture.method)}`,
    ...lines,
    ...content,
    "let (data, response) = try await URLSession.shared.data(for: request)",
  ].join("\n");
}

export const formats = {
  curl,
  fetch: fetchCode,
  Swift: swift,
  HTTPie: httpie,
  HAR: null,
  URL: (capture) => capture.url,
};
