// Tokens in the form of a JWT (RFC 7519), decoded. The page has no key, so it checks no signature.
import { duration, fullTime, make } from "./dom.js";
import { prettyJson } from "./parse.js";

const mostTokens = 5, mostLength = 16384;

/** The texts that look like a JWT, each once. */
export function tokensIn(text) {
  const found = text.match(/\beyJ[\w-]{2,}\.eyJ[\w-]{2,}\.[\w-]*/g) ?? [];
  return [...new Set(found)].filter((token) => token.length <= mostLength).slice(0, mostTokens);
}

/** The header and the claims of a token as texts and values; `null` for another text. */
export function readJwt(token) {
  const parts = token.split(".");
  if (parts.length !== 3 || token.length > mostLength) return null;
  try {
    const [headerText, claimsText] = parts.slice(0, 2).map(base64Url);
    const header = JSON.parse(headerText), claims = JSON.parse(claimsText);
    if (!isObject(header) || !isObject(claims)) return null;
    return { header, claims, headerText, claimsText, isSigned: parts[2] !== "" };
  } catch {
    return null;
  }
}

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

function base64Url(text) {
  const bytes = Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (char) => char.charCodeAt(0));
  return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
}

/** A claim that is a time, in milliseconds; NaN for another value. */
const timeOf = (value) => typeof value === "number" && Math.abs(value) < 1e11 ? value * 1000 : NaN;

/** Whether a token is in force, and until when: a text, and whether that is good. */
export function validity(claims, now = Date.now()) {
  const end = timeOf(claims.exp), start = timeOf(claims.nbf);
  if (start > now) return { text: `not valid before ${fullTime(start)}, in ${duration(start - now)}`, isGood: false };
  if (Number.isNaN(end)) return { text: "without an expiry", isGood: null };
  if (end <= now) return { text: `expired ${duration(now - end)} ago, at ${fullTime(end)}`, isGood: false };
  return { text: `expires in ${duration(end - now)}, at ${fullTime(end)}`, isGood: true };
}

/** The claims that are times, in words. */
const times = { iat: "issued", nbf: "valid from", exp: "expires", auth_time: "logged in" };

function timeLines(claims) {
  return Object.entries(times)
    .filter(([name]) => !Number.isNaN(timeOf(claims[name])))
    .map(([name, word]) => make("div", make("code", name), ` ${word} ${fullTime(timeOf(claims[name]))}`));
}

/** A token, decoded; `null` for another text. */
export function jwtView(token, now = Date.now()) {
  const read = readJwt(token);
  if (!read) return null;
  const { header, claims } = read, { text, isGood } = validity(claims, now);
  const kind = isGood === null ? "s0" : isGood ? "s2" : "s5";
  const subject = typeof claims.sub === "string" ? ` · ${claims.sub}` : "";
  return make(
    "details.jwt",
    { open: true },
    make("summary", `JWT, ${header.alg ?? "no alg"}${subject} `, make("span.badge." + kind, text)),
    make("h4", "Header"),
    make("pre", prettyJson(read.headerText)),
    make("h4", "Claims"),
    make("pre", prettyJson(read.claimsText)),
    timeLines(claims),
    make("p.quiet", read.isSigned ? "The signature is not checked here." : "It has no signature."),
  );
}

/** The tokens in a text, decoded. */
export const jwtViews = (text) => tokensIn(text).map((token) => jwtView(token)).filter(Boolean);
