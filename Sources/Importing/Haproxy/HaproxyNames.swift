/// What is known about the keywords of HAProxy.
enum HaproxyNames {
    /// The keywords of a kind of section.
    struct Table {
        /// Those that are translated where they stand, or named there.
        var handled: Set<String>
        /// Those that change nothing here, with the reason.
        var unneeded: [String: String]
        /// Those that have no counterpart, with the reason.
        var notes: [String: String]
    }

    /// Lines of `global` that matter to requests.
    static let globalNotes = [
        "stats": "the admin listener takes the place of the socket: admin: {}",
        "lua-load": "scripts of HAProxy do not run here; the ware script runs Lua",
        "lua-load-per-thread": "scripts of HAProxy do not run here; the ware script runs Lua",
        "setenv": "variables are those of the environment", "presetenv": "variables are those of the environment",
        "deviceatlas-json-file": "devices are not told apart",
    ]

    /// Lines of `global` that are not needed, with a better reason than the usual one.
    static let global = [
        "maxconn": "limits.connections of a listener, 65536 by default", "log": "log sets the gateway's log",
        "tune.ssl.default-dh-param": "TLS is safe by default", "ssl-default-bind-ciphers": "TLS is safe by default",
        "ssl-default-bind-options": "TLS 1.2 and 1.3 are the default",
        "ssl-default-bind-ciphersuites": "TLS is safe by default",
        "ssl-default-server-ciphers": "TLS is safe by default", "ssl-default-server-options": "TLS is safe by default",
        "nbthread": "one loop for each core is the default", "nbproc": "one loop for each core is the default",
        "cpu-map": "one loop for each core is the default", "ca-base": "write whole paths",
        "crt-base": "write whole paths",
    ]

    /// The sections that are named.
    static let sections = [
        "peers": "limits are shared by a store in Redis", "resolvers": "names are resolved by the system's resolver",
        "mailers": "no mail is sent", "cache": "the ware httpCache stores responses",
        "program": "other programs are not started",
        "http-errors": "errorPage replaces the content of errors", "ring": "log sets the gateway's log",
        "log-forward": "logs are not forwarded", "fcgi-app": "FastCGI is not spoken",
    ]

    /// The keywords of `defaults`, `frontend`, `backend` and `listen`.
    static let proxy = Table(
        handled: [
            "acl", "bind", "mode", "use_backend", "default_backend", "server", "default-server", "server-template",
            "balance",
            "cookie", "timeout", "http-request", "http-response", "http-after-response", "redirect", "option httpchk",
            "http-check",
            "compression", "maxconn", "stats", "monitor-uri", "block", "tcp-request", "reqadd", "rspadd", "reqdel",
            "rspdel", "reqidel",
            "rspidel", "dispatch", "disabled", "from", "stick-table", "stick", "retry-on", "retries",
            "option forwardfor", "errorfile",
            "reqdeny", "reqideny", "reqtarpit", "reqitarpit", "reqpass", "reqallow", "unique-id-header",
            "option originalto", "reqrep", "reqirep",
            "option external-check", "filter", "errorloc", "errorloc302", "errorloc303", "use-server", "http-error",
        ],
        unneeded: [
            "log": "the ware accessLog writes lines", "log-format": "the ware accessLog writes lines",
            "log-format-sd": "the ware accessLog writes lines",
            "log-tag": "the ware accessLog writes lines", "option httplog": "the ware accessLog writes lines",
            "option tcplog": "the ware accessLog writes lines", "option dontlognull": "only requests are logged",
            "option dontlog-normal": "the ware accessLog writes lines",
            "option log-separate-errors": "the ware accessLog writes lines",
            "option logasap": "the ware accessLog writes lines",
            "option log-health-checks": "changes of endpoints are logged",
            "no log": "the ware accessLog writes lines", "option clitcpka": "connections are checked by TCP keep-alive",
            "option srvtcpka": "connections are checked by TCP keep-alive",
            "option tcpka": "connections are checked by TCP keep-alive",
            "option http-server-close": "connections are reused by themselves",
            "option httpclose": "connections are reused by themselves",
            "option forceclose": "connections are reused by themselves",
            "option http-keep-alive": "connections are reused by themselves",
            "no option": "the option is off", "option http-no-delay": "content streams",
            "option splice-auto": "content streams",
            "option splice-request": "content streams", "option splice-response": "content streams",
            "option tcp-smart-accept": "the system does it",
            "option tcp-smart-connect": "the system does it",
            "option redispatch": "a failed connection goes on to the next endpoint",
            "option prefer-last-server": "connections are reused by themselves",
            "option http-pretend-keepalive": "connections are reused by themselves",
            "option abortonclose": "a client's leaving ends its exchange", "option allbackups": "all backups share",
            "option http-use-htx": "an option of old", "option http-buffer-request": "content streams",
            "option contstats": "metrics count continuously",
            "option socket-stats": "metrics count each listener",
            "option http-ignore-probes": "connections without a request are not logged",
            "option checkcache": "the cache follows RFC 9111", "option nolinger": "the system does it",
            "option persist": "sticky keeps clients",
            "option h1-case-adjust-bogus-client": "names of fields are passed on",
            "option http-use-proxy-header": "Connection is read as usual",
            "option h1-case-adjust-bogus-server": "names of fields are passed on",
            "option idle-close-on-response": "connections drain",
            "option tcp-check": "checks are requests: healthCheck",
            "option ssl-hello-chk": "checks are requests: healthCheck",
            "hash-type": "hashing is consistent", "http-reuse": "connections are reused by themselves",
            "fullconn": "limits do not grow with load",
            "backlog": "the system's limit applies", "capture": "records keep the fields of requests",
            "description": "a comment", "id": "a number of HAProxy",
            "bind-process": "loops share all listeners", "grace": "listeners drain", "enabled": "it is on",
            "load-server-state-from-file": "health is learnt again",
            "unique-id-format": "each exchange has an id", "rate-limit": "limits.connections limits them",
            "declare": "records keep the fields of requests",
            "guid": "a number of HAProxy", "clitimeout": "timeout client", "srvtimeout": "timeout server",
            "contimeout": "timeout connect",
            "http-send-name-header": "the service's name is {service}",
            "max-keep-alive-queue": "connections are reused by themselves",
            "max-session-srv-conns": "connections are reused by themselves",
            "option accept-invalid-http-response": "responses are read strictly",
        ],
        notes: [
            "option accept-invalid-http-request": "malformed requests are refused",
            "option http_proxy": "a listener with mode: forward is a proxy",
            "email-alert": "no mail is sent", "source": "connections use the system's address",
            "option transparent": "connections have the gateway's address",
            "monitor": "the admin listener tells whether the gateway is ready",
            "persist": "sticky keeps clients by a cookie of the gateway",
            "tcp-response": "only HTTP is translated", "tcp-check": "checks are requests: healthCheck",
            "external-check": "checks are requests: healthCheck",
            "force-persist": "sticky keeps clients by a cookie of the gateway",
            "ignore-persist": "sticky keeps clients by a cookie of the gateway",
            "option smtpchk": "checks are requests: healthCheck",
            "option redis-check": "checks are requests: healthCheck",
            "option mysql-check": "checks are requests: healthCheck",
            "option pgsql-check": "checks are requests: healthCheck",
        ])
}
