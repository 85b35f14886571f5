import TLSEngine

/// A request as it will be sent: its fields complete, and how the end of its body is told.
package struct RequestPlan: Equatable {
    package enum Framing: Equatable {
        case none
        case length(Int64)
        case chunked
    }

    /// How long a server is waited for that was asked with `Expect` by the caller's own field.
    package static let continueTimeout = Duration.seconds(1)

    package let head: RequestHead
    package let framing: Framing
    /// How long the body waits for the server's word; `nil`: not at all.
    package let continueTimeout: Duration?

    /// - Throws: what makes the request one that cannot be sent.
    package init(_ request: ExchangeRequest) throws(RequestError) {
        if let error = request.head.validationError() { throw error }
        guard !request.origin.host.isEmpty, request.origin.port > 0,
            request.origin.scheme == .http || request.secure != nil
        else { throw .origin }
        self.framing = try Self.framing(request)
        var head = RequestHead(method: request.head.method, target: request.head.target)
        head.fields.reserveCapacity(request.head.fields.count + 3)
        if request.head.first("host") == nil { head.fields.append(HeaderField("Host", request.origin.authority)) }
        for field in request.head.fields where !field.isNamed("transfer-encoding") { head.fields.append(field) }
        switch self.framing {
        case .none: break
        case .length(let length):
            if head.first("content-length") == nil { head.fields.append(HeaderField("Content-Length", "\(length)")) }
        case .chunked:
            head.fields.append(HeaderField("Transfer-Encoding", "chunked"))
        }
        let expected = head.first("expect").map { ASCIIText.equal($0, small: "100-continue") }
        if self.framing == .none || self.framing == .length(0) || (request.continueTimeout == nil && expected != true) {
            self.continueTimeout = nil
        } else {
            self.continueTimeout = request.continueTimeout ?? Self.continueTimeout
            if expected == nil { head.fields.append(HeaderField("Expect", "100-continue")) }
        }
        self.head = head
    }

    /// Of a request that will not be sent.
    init(unsendable head: RequestHead) {
        self.head = head
        self.framing = .none
        self.continueTimeout = nil
    }

    private static func framing(_ request: ExchangeRequest) throws(RequestError) -> Framing {
        let lengths = request.head.fields.filter { $0.isNamed("content-length") }
        let codings = request.head.fields.filter { $0.isNamed("transfer-encoding") }
        // A caller may ask for chunks by the field, but for no other coding and not beside a length.
        guard codings.allSatisfy({ ASCIIText.equal($0.value, small: "chunked") }), codings.isEmpty || lengths.isEmpty,
            lengths.count <= 1
        else { throw .bodyLength }
        let declared = lengths.first.flatMap { ASCIIText.number($0.value) }
        if declared == nil, !lengths.isEmpty { throw .bodyLength }
        if let known = request.body.length, let declared, known != declared { throw .bodyLength }
        if let known = request.body.length, known < 0 { throw .bodyLength }
        if request.body.isNone { return Self.withoutBody(request.head, declared) }
        if !codings.isEmpty { return .chunked }
        guard let length = request.body.length ?? declared else { return .chunked }
        return .length(length)
    }

    /// A method that gives its body a meaning says that there is none (RFC 9110 §8.6).
    private static func withoutBody(_ head: RequestHead, _ declared: Int64?) -> Framing {
        switch head.method {
        case "POST", "PUT", "PATCH": .length(0)
        default: declared == nil ? .none : .length(0)
        }
    }
}

/// The server that a request goes to (RFC 9110 §4.3.1).
package struct ServerEndpoint: Sendable, Hashable {
    package enum Scheme: String, Sendable, Hashable {
        case http
        case https
    }

    package var scheme: Scheme
    /// A name (A-labels, in small letters) or an address; IPv6 without brackets.
    package var host: String
    package var port: UInt16
    /// Of the Unix socket where the server is reached; host and port then only name it. `nil`: there is none.
    package var socketPath: String?

    /// - Parameter port: `nil` means the scheme's own.
    package init(_ scheme: Scheme, host: String, port: UInt16? = nil) {
        self.scheme = scheme
        self.host = host
        self.port = port ?? scheme.defaultPort
    }

    /// The value of the Host field: without the port where it is the scheme's own.
    package var authority: String {
        let host = self.host.utf8.contains(0x3A) ? "[\(self.host)]" : self.host
        return self.port == self.scheme.defaultPort ? host : "\(host):\(self.port)"
    }
}

extension ServerEndpoint.Scheme {
    package var defaultPort: UInt16 {
        switch self {
        case .http: 80
        case .https: 443
        }
    }
}

/// A proxy between us and the server. Part of what makes two connections interchangeable; not spoken to yet.
package enum ProxyHop: Sendable, Hashable {
    /// HTTP: absolute targets for `http`, CONNECT for `https` (RFC 9110 §9.3.6).
    case http(host: String, port: UInt16)
    /// SOCKS 5 (RFC 1928).
    case socks(host: String, port: UInt16)
}

/// How a connection is secured. Connections of the same context are interchangeable.
package struct SecureSetup: Sendable {
    /// What it asks for is answered by the consumer of the exchange that opens the connection.
    package var context: TLSContext
    /// The name to ask for and to verify; `nil` takes the origin's host.
    package var serverName: String?
    /// Sessions are resumed under this key; `nil` resumes none.
    package var resumptionKey: String?
    /// For the handshake, without the time in which we are asked. Default: 30 seconds.
    package var timeout: Duration = .seconds(30)

    package init(context: TLSContext) {
        self.context = context
    }
}
