#if HttpTypes
    public import HTTPTypes

    // Conversions from and to the messages of swift-http-types, for users of its libraries. A conversion copies the
    // message. Invalid values are never repaired: the conversion throws or returns `nil`.

    extension HttpRequest {
        /// The same request. Throws a `GatewayError` if its target cannot be sent, and an `InvalidFieldValue` if a field line
        /// cannot hold a value.
        public init(_ request: HTTPRequest, content: HttpContent = .none) throws {
            guard let method = HttpMethod(request.method.rawValue) else {
                throw GatewayError(.gateway, .requestMalformed, "not a method")
            }
            var target = request.path ?? "/"
            if let authority = request.authority { target = "\(request.scheme ?? "https")://\(authority)\(target)" }
            try self.init(method, target, fields: try HttpFields(request.headerFields), content: content)
        }
    }

    extension HTTPRequest {
        /// The same request, as it would go upstream; `nil` if `HTTPRequest` does not allow its method or a field's name.
        public init?(_ request: HttpRequest) {
            guard let method = HTTPRequest.Method(request.method.name), let fields = HTTPFields(request.fields) else {
                return nil
            }
            self.init(
                method: method, scheme: request.host == nil ? nil : request.scheme,
                authority: request.authority?.description, path: request.upstreamTarget, headerFields: fields)
        }
    }

    extension HttpResponse {
        /// The same response. Throws an `InvalidFieldValue` if a field line cannot hold a value, and a `GatewayError` if the
        /// status is invalid.
        public init(_ response: HTTPResponse, content: HttpContent = .none) throws {
            guard let status = HttpStatus(response.status.code) else {
                throw GatewayError(.gateway, .responseMalformed, "not a status")
            }
            self.init(status, fields: try HttpFields(response.headerFields), content: content)
        }
    }

    extension HTTPResponse {
        /// The same response; `nil` if `HTTPResponse` does not allow a field's name.
        public init?(_ response: HttpResponse) {
            guard let fields = HTTPFields(response.fields) else { return nil }
            self.init(
                status: Status(code: response.status.code, reasonPhrase: response.status.reasonPhrase),
                headerFields: fields)
        }
    }

    extension HttpFields {
        /// The same lines in the same order. Throws an `InvalidFieldValue`.
        public init(_ fields: HTTPFields) throws {
            self.init()
            for field in fields {
                guard let name = FieldName(field.name.canonicalName) else {
                    throw GatewayError(.gateway, .requestMalformed, "not a field name")
                }
                try append(name, field.value)
            }
        }
    }

    extension HTTPFields {
        /// The same lines, in the same order; `nil` if `HTTPFields` does not allow a name.
        public init?(_ fields: HttpFields) {
            self.init()
            for (name, value) in fields {
                guard let name = HTTPField.Name(name) else { return nil }
                append(HTTPField(name: name, value: value))
            }
        }
    }
#endif
