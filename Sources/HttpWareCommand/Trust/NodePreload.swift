/// The script that `node --require` reads before a program. It sets the proxy for `http`, `https` and `fetch`.
///
/// Versions from 22.21 and 24.5 read the variables themselves if `NODE_USE_ENV_PROXY` is set; there the script does nothing.
/// Elsewhere all agents connect through the proxy. Their `createConnection` opens a tunnel for https, and requests for http are
/// sent in absolute form. Sockets that a program makes itself, and agents with their own `createConnection`, are not changed.
enum NodePreload {
    static let text = #"""
        'use strict';
        (() => {
          if (process.allowedNodeEnvironmentFlags.has('--use-env-proxy')) return;
          const http = require('http'), https = require('https'), net = require('net'), tls = require('tls');
          const env = process.env;
          const parsed = text => { try { return text ? new URL(text) : null; } catch { return null; } };
          const proxies = {
            'http:': parsed(env.http_proxy || env.HTTP_PROXY),
            'https:': parsed(env.https_proxy || env.HTTPS_PROXY),
          };
          const left = (env.no_proxy || env.NO_PROXY || '').toLowerCase().split(/[\s,]+/).filter(Boolean);
          const bare = host => host.replace(/^\[|\]$/g, '');

          // The proxy for a host; null if it is reached directly.
          function proxyFor(protocol, host, port) {
            const name = bare(String(host).toLowerCase()).replace(/\.$/, '');
            const isLeft = left.some(entry => {
              if (entry === '*') return true;
              const match = net.isIPv6(entry) ? [entry, entry] : /^(\[.*\]|[^:]*)(?::(\d+))?$/.exec(entry);
              if (!match) return false;
              const wanted = bare(match[1]).replace(/^\*?\./, '');
              if (match[2] && Number(match[2]) !== Number(port)) return false;
              return name === wanted || (!net.isIP(name) && name.endsWith('.' + wanted));
            });
            return isLeft ? null : proxies[protocol] || null;
          }

          const authority = (host, port) => (bare(host).includes(':') ? '[' + bare(host) + ']' : host) + ':' + port;
          const addressOf = proxy => ({ host: bare(proxy.hostname), port: Number(proxy.port || 80) });

          function credentials(proxy) {
            if (!proxy.username) return {};
            const text = decodeURIComponent(proxy.username) + ':' + decodeURIComponent(proxy.password);
            return { 'Proxy-Authorization': 'Basic ' + Buffer.from(text).toString('base64') };
          }

          // Opens a tunnel to a host. RFC 9110 §9.3.6.
          function openTunnel(proxy, host, port, done) {
            const target = authority(host, port);
            const request = http.request({
              method: 'CONNECT', path: target, headers: { Host: target, ...credentials(proxy) },
              createConnection: () => net.connect(addressOf(proxy)),
            });
            const failed = (message, code) => done(Object.assign(new Error(message), { code }));
            request.once('connect', (response, socket, head) => {
              if (response.statusCode !== 200) {
                socket.destroy();
                return failed(`the proxy answered CONNECT ${target} with ${response.statusCode}`, 'ERR_PROXY_TUNNEL');
              }
              if (head.length) socket.unshift(head);
              done(null, socket);
            });
            request.once('response', response => {
              response.destroy();
              failed(`the proxy answered CONNECT ${target} with ${response.statusCode}`, 'ERR_PROXY_TUNNEL');
            });
            request.once('error', done);
            request.end();
          }

          // https: a connection is a tunnel with TLS in it.
          const secureConnection = https.Agent.prototype.createConnection;
          https.Agent.prototype.createConnection = function createConnection(options, callback) {
            const isOurs = options !== null && typeof options === 'object' && typeof callback === 'function'
              && !options.socket && !options.socketPath;
            const host = isOurs && (options.host || 'localhost'), port = isOurs && (options.port || 443);
            const proxy = isOurs && proxyFor('https:', host, port);
            if (!proxy) return secureConnection.apply(this, arguments);
            openTunnel(proxy, host, port, (error, socket) => {
              if (error) return callback(error);
              let secure;
              try {
                const servername = options.servername === undefined && !net.isIP(bare(host)) ? host : options.servername;
                secure = secureConnection.call(this, { ...options, servername, path: undefined, socket });
              } catch (fault) {
                socket.destroy();
                return callback(fault);
              }
              callback(null, secure);
            });
          };

          // http: the request is sent to the proxy, with its whole URL. RFC 9112 §3.2.2.
          const addRequest = http.Agent.prototype.addRequest;
          http.Agent.prototype.addRequest = function (request, options, ...more) {
            const isOurs = this.protocol === 'http:' && options !== null && typeof options === 'object'
              && !options.socketPath && this.createConnection === http.Agent.prototype.createConnection;
            const host = isOurs && (options.host || 'localhost'), port = isOurs && (options.port || 80);
            const proxy = isOurs && !String(request.path).includes('://') && request.method !== 'CONNECT' && proxyFor('http:', host, port);
            if (!proxy) return addRequest.call(this, request, options, ...more);
            const name = authority(host, port).replace(/:80$/, '');
            const former = `${request.method} ${request.path} HTTP/1.1\r\n`;
            request.path = `http://${name}${request.path.startsWith('/') ? '' : '/'}${request.path}`;
            const start = `${request.method} ${request.path} HTTP/1.1\r\n`;
            const fields = credentials(proxy);
            if (request._header) {
              // The head is made already, where the program gave its fields as a list or expects 100.
              const lines = Object.entries(fields).map(([key, value]) => `${key}: ${value}\r\n`).join('');
              const changed = head => head.startsWith(former) ? start + lines + head.slice(former.length) : head;
              request._header = changed(request._header);
              for (const piece of request.outputData || []) if (typeof piece.data === 'string') piece.data = changed(piece.data);
            } else {
              for (const [key, value] of Object.entries(fields)) request.setHeader(key, value);
            }
            return addRequest.call(this, request, { ...options, ...addressOf(proxy) }, ...more);
          };

          // fetch and WebSocket: a dispatcher that does the same.
          const slot = Symbol.for('undici.globalDispatcher.1');
          let isInstalled = false;
          function install() {
            if (isInstalled) return;
            isInstalled = true;
            void globalThis.Headers;  // loads what fetch is made of
            const direct = globalThis[slot];
            // A program that has set a dispatcher of its own knows what it wants.
            if (!direct || direct.constructor.name !== 'Agent') return;
            const proxied = new direct.constructor({
              connect(options, callback) {
                const { protocol, hostname, port } = options;
                const done = (error, socket) => error ? callback(error, null) : callback(null, socket);
                const opened = (socket, event) => {
                  const failed = error => done(error);
                  socket.setNoDelay(true);
                  socket.once('error', failed);
                  socket.once(event, () => { socket.off('error', failed); done(null, socket); });
                };
                if (protocol !== 'https:') return opened(net.connect({ host: bare(hostname), port: port || 80 }), 'connect');
                const proxy = proxyFor(protocol, hostname, port || 443);
                openTunnel(proxy, hostname, port || 443, (error, socket) => {
                  if (error) return done(error);
                  const servername = options.servername || (net.isIP(bare(hostname)) ? '' : hostname);
                  opened(tls.connect({ socket, servername, host: bare(hostname), ALPNProtocols: ['http/1.1'] }), 'secureConnect');
                });
              },
            });
            const withField = (headers, name, value) => {
              if (!headers) return [name, value];
              if (Array.isArray(headers)) return typeof headers[0] === 'string' || !headers.length ? [...headers, name, value] : [...headers, [name, value]];
              if (typeof headers[Symbol.iterator] === 'function') return [...headers].flat().concat(name, value);
              return { ...headers, [name]: value };
            };
            const names = headers => !headers ? [] : Array.isArray(headers) ? headers.flat().filter((_, index) => index % 2 === 0) : Object.keys(headers);
            const dispatch = direct.dispatch;
            direct.dispatch = function (options, handler) {
              const origin = parsed(String(options.origin || ''));
              const port = origin && (origin.port || (origin.protocol === 'https:' ? 443 : 80));
              const proxy = origin && proxyFor(origin.protocol, origin.hostname, port);
              if (!proxy) return dispatch.call(this, options, handler);
              if (origin.protocol === 'https:') return proxied.dispatch(options, handler);
              let headers = options.headers;
              for (const [key, value] of Object.entries(credentials(proxy))) headers = withField(headers, key, value);
              if (!names(headers).some(name => String(name).toLowerCase() === 'host')) headers = withField(headers, 'host', origin.host);
              return proxied.dispatch({ ...options, headers, origin: proxy.origin, path: origin.origin + options.path }, handler);
            };
          }
          const fetchProperty = Object.getOwnPropertyDescriptor(globalThis, 'fetch');
          if (fetchProperty && typeof fetchProperty.value === 'function') {
            const plain = fetchProperty.value;
            const first = function fetch(input, init = undefined) {
              install();
              if (globalThis.fetch === first) globalThis.fetch = plain;
              return plain.call(this, input, init);
            };
            Object.defineProperty(globalThis, 'fetch', { ...fetchProperty, value: first });
          }
          if (Object.getOwnPropertyDescriptor(globalThis, 'WebSocket')) install();
        })();

        """#
}
