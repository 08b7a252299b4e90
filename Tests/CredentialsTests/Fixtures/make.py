#!/usr/bin/env python3
"""Makes the tokens and keys that the tests of tokens read, with libraries that are independent of httpware.

    pip install pyjwt joserfc cryptography && python3 Tests/CredentialsTests/Fixtures/make.py

New private keys are made each time, and kept nowhere. "Now" is 2026-01-01T00:00:00Z, where the tests' clock stands.
"""

import base64
import hashlib
import hmac
import json
from pathlib import Path

import jwt
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from joserfc import jwk as jose_jwk
from joserfc import jwt as jose_jwt

FOLDER = Path(__file__).resolve().parent
NOW = 1_767_225_600
SECRET = "a secret of the tests, thirty-two bytes and more"
CLAIMS = {"iss": "https://login.example.com", "aud": "orders", "sub": "ada", "scope": "read write", "iat": NOW - 60, "exp": NOW + 3600}

KEYS = {
    "rsa-1": rsa.generate_private_key(public_exponent=65537, key_size=2048),
    "p256-1": ec.generate_private_key(ec.SECP256R1()),
    "p384-1": ec.generate_private_key(ec.SECP384R1()),
    "ed-1": ed25519.Ed25519PrivateKey.generate(),
}
STRANGER = rsa.generate_private_key(public_exponent=65537, key_size=2048)
WEAK = rsa.generate_private_key(public_exponent=65537, key_size=1024)
BY_ALGORITHM = {"RS256": "rsa-1", "PS256": "rsa-1", "ES256": "p256-1", "ES384": "p384-1", "EdDSA": "ed-1"}
lines: list[str] = []


def b64(data: bytes | str) -> str:
    return base64.urlsafe_b64encode(data.encode() if isinstance(data, str) else data).rstrip(b"=").decode()


def public_pem(key) -> str:
    return key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo).decode()


def private_pem(key) -> bytes:
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())


def jwk(kid: str, key) -> dict:
    return json.loads(
        {"rsa": jwt.algorithms.RSAAlgorithm, "p25": jwt.algorithms.ECAlgorithm, "p38": jwt.algorithms.ECAlgorithm, "ed-": jwt.algorithms.OKPAlgorithm}[
            kid[:3]
        ].to_jwk(key.public_key())
    ) | {"kid": kid, "use": "sig"}


def sign(signed: str, algorithm: str = "RS256", key=None) -> str:
    """The signature over `header.claims`, whatever they are."""
    key = key or KEYS[BY_ALGORITHM[algorithm]]
    if algorithm == "RS256":
        return b64(key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256()))
    return b64(key.sign(signed.encode(), padding.PSS(padding.MGF1(hashes.SHA256()), 32), hashes.SHA256()))


def raw(header: str | bytes, claims: str | bytes, **options) -> str:
    signed = f"{b64(header)}.{b64(claims)}"
    return f"{signed}.{sign(signed, **options)}"


def add(expected: str, name: str, token: str) -> None:
    lines.append(f"{expected}|{name}|{token}")


def token(algorithm: str = "RS256", header: dict | None = None, **claims) -> str:
    kid = BY_ALGORITHM[algorithm]
    values = {k: v for k, v in (CLAIMS | claims).items() if v is not None}
    headers = {k: v for k, v in ({"kid": kid} | (header or {})).items() if v is not ...}
    return jwt.encode(values, KEYS[kid], algorithm=algorithm, headers=headers)


HEADER = json.dumps({"alg": "RS256", "typ": "JWT", "kid": "rsa-1"})
BODY = json.dumps(CLAIMS)

# RFC 7518 §3.1, RFC 8037 §3.1: each algorithm, by two libraries.
for algorithm, kid in BY_ALGORITHM.items():
    add("good", f"{algorithm} by PyJWT", token(algorithm))
    key = jose_jwk.import_key(private_pem(KEYS[kid]), {"rsa": "RSA", "p25": "EC", "p38": "EC", "ed-": "OKP"}[kid[:3]])
    add("good", f"{algorithm} by joserfc", jose_jwt.encode({"alg": algorithm, "kid": kid}, CLAIMS, key, algorithms=[algorithm]))
add("good", "a token without kid", token(header={"kid": ...}))
add("good", "without typ", token(header={"typ": None}))
add("good", "RFC 9068 §2.1: typ at+jwt", token(header={"typ": "at+jwt"}))
add("good", "RFC 7515 §4.1.9: typ application/at+jwt", token(header={"typ": "application/at+JWT"}))
add("good", "RFC 7519 §4.1.3: aud is a list", token(aud=["others", "orders"]))
add("good", "RFC 7519 §2: dates need not be whole", token(exp=NOW + 0.5, iat=NOW - 0.25))
add("good", "RFC 7519 §4.1.4: expired a second within the skew", token(exp=NOW - 59))
add("good", "RFC 7519 §4.1.5: nbf a second within the skew", token(nbf=NOW + 60))
add("good", "exp far away", token(exp=253402300799))
add("good", "RFC 8725 §3.10: jku and x5u are not followed", token(header={"jku": "http://127.0.0.1:1/keys", "x5u": "http://127.0.0.1:1/x"}))
add("good", "claims in other languages", token(sub="Ада Лавлейс"))

# RFC 8725 §3.1, §3.2: algorithms.
for name in ["none", "None", "nOnE", "NONE", ""]:
    add("the token's algorithm is not allowed", f"RFC 8725 §3.1: alg {name or 'empty'}", f"{b64(json.dumps({'alg': name}))}.{b64(BODY)}.")
    add("the token's algorithm is not allowed", f"RFC 8725 §3.1: alg {name or 'empty'}, signed", raw(json.dumps({"alg": name, "kid": "rsa-1"}), BODY))
swapped = f"{b64(json.dumps({'alg': 'HS256', 'typ': 'JWT', 'kid': 'rsa-1'}))}.{b64(BODY)}"
for label, secret in [("PEM", public_pem(KEYS["rsa-1"]).encode()), ("PEM without its last line end", public_pem(KEYS["rsa-1"]).strip().encode()), ("modulus", KEYS["rsa-1"].public_key().public_numbers().n.to_bytes(256, "big"))]:
    add("signature", f"RFC 8725 §2.1: HS256 with the RSA key's {label} as secret", f"{swapped}.{b64(hmac.new(secret, swapped.encode(), hashlib.sha256).digest())}")
add("signature", "RFC 8725 §3.1: PS256 claimed, RS256 made", raw(json.dumps({"alg": "PS256", "kid": "rsa-1"}), BODY))
add("signature", "RFC 8725 §3.1: RS256 claimed, PS256 made", raw(HEADER, BODY, algorithm="PS256"))
add("signature", "RFC 8725 §3.1: ES256 claimed for an RSA key", raw(json.dumps({"alg": "ES256", "kid": "rsa-1"}), BODY))
add("the token's algorithm is not allowed", "RFC 7515 §4.1.1: alg is case-sensitive", raw(json.dumps({"alg": "rs256", "kid": "rsa-1"}), BODY))
add("the token's algorithm is not allowed", "RFC 7515 §4.1.1: alg is not a text", raw('{"alg":["RS256"],"kid":"rsa-1"}', BODY))
add("the token's algorithm is not allowed", "RFC 7515 §4.1.1: no alg", raw('{"kid":"rsa-1"}', BODY))
add("good", "RS512 by PyJWT", jwt.encode(CLAIMS, KEYS["rsa-1"], algorithm="RS512", headers={"kid": "rsa-1"}))

# Signatures.
add("signature", "another key", jwt.encode(CLAIMS, STRANGER, algorithm="RS256", headers={"kid": "rsa-1"}))
add("signature", "a key that is too small", jwt.encode(CLAIMS, WEAK, algorithm="RS256", headers={"kid": "rsa-1"}))
add("unknown key", "an unknown kid", jwt.encode(CLAIMS, STRANGER, algorithm="RS256", headers={"kid": "rsa-9"}))
add("unknown key", "RFC 8725 §3.10: kid ../../etc/passwd", token(header={"kid": "../../etc/passwd"}))
add("unknown key", "RFC 8725 §3.10: kid ' OR 1=1 --", token(header={"kid": "' OR 1=1 --"}))
add("kid", "a kid of 300 bytes", token(header={"kid": "k" * 300}))
add("kid", "a kid that is a number", raw('{"alg":"RS256","kid":1}', BODY))
good = token()
head, body, signature = good.split(".")
add("signature", "a signature of nothing", f"{head}.{body}.")
add("signature", "a truncated signature", f"{head}.{body}.{signature[:-4]}")
add("signature", "a changed claim", f"{head}.{b64(json.dumps(CLAIMS | {'sub': 'eve'}))}.{signature}")
add("signature", "a changed header", f"{b64(json.dumps({'alg': 'RS256', 'typ': 'JWT', 'kid': 'rsa-1', 'x': 1}))}.{body}.{signature}")
es = token("ES256")
es_head, es_body, es_signature = es.split(".")
der = KEYS["p256-1"].sign(f"{es_head}.{es_body}".encode(), ec.ECDSA(hashes.SHA256()))
add("signature", "RFC 7518 §3.4: ES256 in DER", f"{es_head}.{es_body}.{b64(der)}")
plain = base64.urlsafe_b64decode(es_signature + "==")
order = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
for label, value in [
    ("r and s zero", bytes(64)), ("r zero", bytes(32) + plain[32:]), ("s zero", plain[:32] + bytes(32)), ("r the order", order.to_bytes(32, "big") + plain[32:]),
    ("all ones", b"\xff" * 64), ("63 bytes", plain[:63]), ("65 bytes", plain + b"\0"), ("96 bytes", plain + bytes(32)),
]:
    add("signature", f"CVE-2022-21449: ES256 with {label}", f"{es_head}.{es_body}.{b64(value)}")
ed_head, ed_body, ed_signature = token("EdDSA").split(".")
add("signature", "EdDSA of zeros", f"{ed_head}.{ed_body}.{b64(bytes(64))}")
add("signature", "RS256 of zeros", f"{head}.{body}.{b64(bytes(256))}")

# Header rules.
add("extensions", "RFC 7515 §4.1.11: crit", raw('{"alg":"RS256","kid":"rsa-1","crit":["exp"],"exp":1}', BODY))
add("extensions", "RFC 7515 §4.1.11: crit, empty", raw('{"alg":"RS256","kid":"rsa-1","crit":[]}', BODY))
add("extensions", "RFC 7797 §6: b64 false", raw('{"alg":"RS256","kid":"rsa-1","b64":false,"crit":["b64"]}', BODY))
add("not JWT or at+jwt", "RFC 8725 §3.11: typ of another kind", token(header={"typ": "logout+jwt"}))
add("not JWT or at+jwt", "RFC 8725 §3.11: typ dpop+jwt", token(header={"typ": "dpop+jwt"}))
add("not JWT or at+jwt", "typ that is not a text", raw('{"alg":"RS256","kid":"rsa-1","typ":1}', BODY))
add("nested", "RFC 7519 §5.2: cty JWT", raw('{"alg":"RS256","kid":"rsa-1","cty":"JWT"}', b64(good)))
add("encrypted", "RFC 7516 §4.1.2: enc", raw('{"alg":"RS256","kid":"rsa-1","enc":"A128GCM"}', BODY))
add("two members", "RFC 7515 §4: alg twice", raw('{"alg":"none","alg":"RS256","kid":"rsa-1"}', BODY))
add("two members", "RFC 7515 §4: alg twice, once escaped", raw('{"alg":"RS256","\\u0061lg":"none","kid":"rsa-1"}', BODY))
add("not an object", "a header that is a list", raw("[]", BODY))
add("nested too deeply", "a header of 3,000 brackets", raw("[" * 3000, BODY))
add("not UTF-8", "RFC 8725 §3.7: a header that is not UTF-8", raw(b'{"alg":"RS256","kid":"\xff"}', BODY))
add("in the token's header", "RFC 8725 §3.7: a header in UTF-16", raw('{"alg":"RS256"}'.encode("utf-16"), BODY))
add("NUL", "NUL in a header", raw('{"alg":"RS256","kid":"rsa-1\\u0000"}', BODY))
add("control character", "a bare NUL in a header", raw(b'{"alg":"RS256","kid":"rsa-1\x00"}', BODY))

# Claims.
add("two members", "RFC 7519 §4: sub twice", raw(HEADER, BODY[:-1] + ', "sub": "eve"}'))
add("two members", "RFC 7519 §4: exp twice", raw(HEADER, BODY[:-1] + f', "exp": {NOW + 99999}}}'))
add("two members", "a name twice within a claim", raw(HEADER, BODY[:-1] + ', "x": {"a": 1, "a": 2}}'))
add("in the token's claims", "claims with something behind", raw(HEADER, BODY + "{}"))
add("in the token's claims", "claims that are nothing", raw(HEADER, ""))
add("not an object", "claims that are a text", raw(HEADER, '"x"'))
add("half a surrogate pair", "half a surrogate pair", raw(HEADER, BODY[:-1] + ', "x": "\\ud800"}'))
add("no exp", "RFC 7519 §4.1.4: no exp", token(exp=None))
add("expired", "RFC 7519 §4.1.4: expired at the end of the skew", token(exp=NOW - 60))
add("expired", "RFC 7519 §4.1.4: expired a second beyond the skew", token(exp=NOW - 61))
add("expired", "exp zero", token(exp=0))
for label, value in [("a text", f'"{NOW + 60}"'), ("true", "true"), ("null", "null"), ("negative", "-1"), ("huge", "1e300"), ("beyond a double", "1e999"), ("2^63", "9223372036854775808")]:
    add("exp is not a date", f"RFC 7519 §4.1.4: exp is {label}", raw(HEADER, json.dumps(CLAIMS | {"exp": 0}).replace('"exp": 0', f'"exp": {value}')))
add("in the token's claims", "exp is NaN", raw(HEADER, json.dumps(CLAIMS | {"exp": float("nan")})))
add("not valid yet", "RFC 7519 §4.1.5: nbf a second beyond the skew", token(nbf=NOW + 61))
add("not valid yet", "RFC 7519 §4.1.6: issued in the future", token(iat=NOW + 61))
add("another issuer", "RFC 8725 §3.8: another iss", token(iss="https://evil.example.com"))
add("another issuer", "RFC 8725 §3.8: iss with a slash more", token(iss="https://login.example.com/"))
add("another issuer", "RFC 8725 §3.8: no iss", token(iss=None))
add("iss is not a string", "RFC 7519 §4.1.1: iss is a list", raw(HEADER, json.dumps(CLAIMS | {"iss": ["https://login.example.com"]})))
add("another audience", "RFC 8725 §3.9: another aud", token(aud="others"))
add("another audience", "RFC 8725 §3.9: no aud", token(aud=None))
add("another audience", "RFC 8725 §3.9: aud is an empty list", token(aud=[]))
add("aud is neither", "RFC 7519 §4.1.3: aud is a number", raw(HEADER, json.dumps(CLAIMS | {"aud": 1})))
add("aud is neither", "RFC 7519 §4.1.3: aud lists a number", raw(HEADER, json.dumps(CLAIMS | {"aud": ["orders", 1]})))

# Form.
add("three segments", "nothing", "")
add("three segments", "one segment", head)
add("three segments", "two segments", f"{head}.{body}")
add("three segments", "four segments", f"{good}.x")
add("three segments", "RFC 7516 §3.1: five segments", f"{good}.x.y")
add("three segments", "dots", ".....")
add("JSON text is incomplete", "two dots", "..")
add("base64url", "a blank before", " " + good)
add("base64url", "RFC 7515 §2: padding", f"{head}==.{body}.{signature}")
add("base64url", "RFC 4648 §5: the other alphabet", f"{head}.{body}.{'+/' + signature[2:]}")
spare = signature[:-1] + "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"["ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".index(signature[-1]) ^ 1]
add("base64url", "RFC 4648 §3.5: bits that do not count", f"{head}.{body}.{spare}")
add("base64url", "a line feed of a token", f"{head}.{body}.{signature[:8]}%{signature[9:]}")

(FOLDER / "tokens.txt").write_text("\n".join(lines) + "\n")
secret_claims = CLAIMS | {"exp": NOW + 3600}
(FOLDER / "hs256.txt").write_text("\n".join([
    jwt.encode(secret_claims, SECRET, algorithm="HS256"),
    jose_jwt.encode({"alg": "HS256"}, secret_claims, jose_jwk.OctKey.import_key(SECRET)),
]) + "\n")
(FOLDER / "jwks.json").write_text(json.dumps({"keys": [jwk(kid, key) for kid, key in KEYS.items()]}, indent=1) + "\n")
(FOLDER / "weak.json").write_text(json.dumps({"keys": [jwk("rsa-weak", WEAK)]}, indent=1) + "\n")
for kid, key in KEYS.items():
    (FOLDER / f"{kid}.pem").write_text(public_pem(key))
print(f"{len(lines)} tokens")
