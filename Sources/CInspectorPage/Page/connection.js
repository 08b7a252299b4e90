// The connections of an exchange: the client's, the origin server's, and what is known about the exchange itself.
import { duration, facts, fullTime, make } from "./dom.js";
import { link } from "./state.js";

/** Why a tunnel passes unread. */
const unreadReasons = {
  notListed: "intercept.hosts does not list the host",
  excepted: "intercept.except lists the host",
  pinned: "the client refused the certificate for the host",
  opaque: "the client speaks neither TLS nor HTTP",
};

export function showConnection(box, capture) {
  const record = capture.record ?? {}, tls = capture.tls ?? {};
  box.replaceChildren(
    make("h3", "Client"),
    facts(clientFacts(capture, record).concat(tlsFacts(tls.client))),
    make("h3", "Origin server"),
    record.attempts || capture.server
      ? facts(originFacts(capture, record).concat(tlsFacts(tls.server)))
      : make("p.quiet", "The request was not sent to an origin server."),
    make("h3", "Exchange"),
    facts(exchangeFacts(capture, record)),
  );
}

export const clientFacts = (capture, record) => [
  ["address", capture.client ?? record.client],
  ["listener", capture.listener],
  ["protocol", capture.version ?? record.protocol],
  ["passes unread", unreadReasons[record.unread] ?? record.unread],
  ["tunnel", record.tunnel && tunnelText(record.tunnel)],
];

const tunnelText = ({ host, port, address, principal }) =>
  host + ":" + port + (address ? " at " + address : "") + (principal ? ", opened by " + principal : "");

export function originFacts(capture, record) {
  const connection = record.reused ? "reused" : "new";
  return [
    ["address", capture.server ?? record.endpoint],
    ["service", capture.service],
    ["attempts", record.attempts],
    ["connection", record.attempts ? connection : null],
  ];
}

const exchangeFacts = (capture, record) => [
  ["begun", fullTime(capture.time)],
  ["duration", duration(capture.duration)],
  ["route", capture.route],
  ["response made by", record.responder],
  ["cache", record.cache],
  ["end", record.end],
  ["fault", record.fault],
  ["reason", record.reason],
  ["id", record.exchange ?? capture.id],
  ["sent again from", capture.replayOf ? requestLink(capture.replayOf) : null],
  ["rules", capture.rules?.length ? capture.rules.join(", ") : null],
];

const requestLink = (id) => make("a", { href: link("requests", id) }, "request " + id);

export function tlsFacts(tls) {
  if (!tls) return [];
  const { clientCertificate } = tls;
  return [
    ["TLS", [tls.version, tls.cipher, tls.group].filter(Boolean).join(", ")],
    ["ALPN", tls.alpn],
    ["name (SNI)", tls.name],
    ["session", tls.resumed ? "resumed" : null],
    ...certificateFacts("certificate", tls),
    ...(clientCertificate ? certificateFacts("certificate of the client", clientCertificate) : []),
  ];
}

const certificateFacts = (name, shown) => [
  [name, shown.sha256 ? shown.subject || "without a subject" : null],
  ["issued by", shown.issuer],
  ["names", shown.names?.length ? namesText(shown) : null],
  ["valid", shown.notAfter ? `${fullTime(shown.notBefore)} to ${fullTime(shown.notAfter)}` : null],
  ["SHA-256", shown.sha256],
];

const namesText = ({ names, moreNames }) => names.join(", ") + (moreNames ? ` and ${moreNames} more` : "");
