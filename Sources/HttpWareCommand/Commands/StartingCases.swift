extension StartingFile {
    /// The cases that `init` writes beside the configuration.
    var cases: String {
        let steps =
            switch self {
            case .gateway:
                """
                  - name: a request goes to the application with an identifier
                    request: { url: /hello, headers: { Accept: text/plain } }
                    upstream: { headers: { Content-Type: text/plain }, text: hello }
                    expect:
                      upstream: { service: app, headers: { X-Request-Id: present } }
                      response: { status: 200, headers: { X-Request-Id: present }, text: hello }
                      wares: { requestId: pass, rateLimit: pass }

                  - name: content that is too large does not reach the application
                    request: { method: POST, url: /, headers: { Content-Length: "10485761" } }
                    expect: { upstream: none, response: { status: 413 } }

                """
            case .cache:
                """
                  - name: a response is stored as long as the application allows
                    steps:
                      - request: { url: /page }
                        upstream: { headers: { Cache-Control: max-age=60 }, text: first }
                        expect: { upstream: { service: app }, wares: { httpCache: miss } }
                      - after: 59s # the clock of the case: nothing waits
                        request: { url: "/page?utm_source=mail" }
                        expect: { upstream: none, response: { text: first }, wares: { httpCache: hit } }

                """
            case .tokens:
                """
                  - name: a request gets the gateway's token
                    calls: # the answers of other servers that the gateway itself calls
                      - url: "https://login.example.com/oauth2/token"
                        answer: { json: { access_token: first, token_type: Bearer, expires_in: 3600 } }
                    request: { url: /orders }
                    upstream: { json: { orders: [] } }
                    expect:
                      calls: { method: POST, contains: grant_type=client_credentials }
                      upstream: { service: api, headers: { Authorization: Bearer first } }
                      response: { status: 200, json: { orders: [] } }

                  - name: without a token, nothing reaches the API
                    calls:
                      - { url: "https://login.example.com/oauth2/token", answer: { fails: connect } }
                    request: { url: /orders }
                    expect: { upstream: none, response: { status: 503 } }

                """
            case .site:
                """
                  - name: a file that does not exist is answered with 404
                    request: { url: /no-such-file.html }
                    expect:
                      upstream: none
                      response: { status: 404, headers: { X-Content-Type-Options: nosniff } }

                """
            case .proxy:
                """
                  - name: a request goes where its URL says
                    request: { url: "http://example.com/page" }
                    upstream: { text: there }
                    expect:
                      upstream: { service: passthrough, path: /page, headers: { Host: example.com } }
                      response: { text: there }

                  - name: a denied host is not reached
                    request: { url: "http://eu.telemetry.example.com/" }
                    expect: { upstream: none, response: { status: 403 } }

                """
            case .agent:
                """
                  - name: a host that is not listed is not reached
                    request: { url: "https://elsewhere.example.net/" } # inside a tunnel, which the gateway reads
                    expect: { upstream: none, response: { status: 403 } }

                """
            }
        return """
            # Cases for the configuration beside this file: \(Program.name) test runs them, without a network and without waiting.
            cases:
            \(steps)
            """
    }
}
