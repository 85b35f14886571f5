import SessionTasks
import TLSEngine
import WireText

/// A request as it is sent: the complete head, and the framing of the body.
package struct RequestPlan: Equatable {
    package enum Framing: Equatable {
        case none
        case length(Int64)
        case chunked
    }

    /// Used if the caller's own fields contain `Expect: 100-continue` and no timeout is set.
    package static let continueTimeout = Duration.seconds(1)

    package let head: RequestHead
    package let framing: Framing
    /// How long the body waits for `100 Continue`; `nil`: it follows at once.
    package let continueTimeout: Duration?

    /// - Throws: why the request cannot be sent.
    package init(_ request: ExchangeRequest) throws(RequestError) {
        if let error = request.head.validationError() { throw error }
        guard !request.origin.host.isEmpty, request.origin.port > 0,
            request.origin.scheme == .http || request.secure != nil && request.proxy?.method != .forwarding
        else { throw .origin }
        self.framing = try Self.framing(request)
        let forwards = request.proxy?.method == .forwarding
        var head = RequestHead(
            method: request.head.method,
            target: (forwards ? "http://\(request.origin.authority)" : "") + request.head.target)
        var fields: [FieldLine] = []
        fields.reserveCapacity(request.head.fields.count + 2)
        if request.head.fields["Host"] == nil { fields.append(FieldLine("Host", request.origin.authority)) }
        if Self.hasReplacedField(request) {
            fields += request.head.fields.filter { !Self.isReplaced($0, in: request) }
        } else {
            fields += request.head.fields.all
        }
        head.fields = FieldLines(fields)
        if forwards, let authorization = request.proxy?.authorization {
            head.fields.append(FieldLine("Proxy-Authorization", authorization))
        }
        switch self.framing {
        case .none: break
        case .length(let length):
            if head.fields["Content-Length"] == nil { head.fields.append(FieldLine("Content-Length", "\(length)")) }
        case .chunked:
            head.fields.append(FieldLine("Transfer-Encoding", "chunked"))
        }
        let expected = head.fields["Expect"].map { $0.matchesIgnoringCase("100-continue") }
        if self.framing == .none || self.framing == .length(0) || (request.continueTimeout == nil && expected != true) {
            self.continueTimeout = nil
        } else {
            self.continueTimeout = request.continueTimeout ?? Self.continueTimeout
            if expected == nil { head.fields.append(FieldLine("Expect", "100-continue")) }
        }
        self.head = head
    }

    private static func hasReplacedField(_ request: ExchangeRequest) -> Bool {
        request.head.fields["Transfer-Encoding"] != nil || request.head.fields["Proxy-Authorization"] != nil
    }

    /// A proxy's credentials are for a proxy that forwards the request, and must not get to the server (RFC 9110 §11.7.2).
    private static func isReplaced(_ field: FieldLine, in request: ExchangeRequest) -> Bool {
        if field.isNamed("transfer-encoding") { return true }
        guard field.isNamed("proxy-authorization") else { return false }
        return request.proxy?.method != .forwarding || request.proxy?.authorization != nil
    }

    /// A placeholder for a request that fails validation.
    init(unsendable head: RequestHead) {
        self.head = head
        self.framing = .none
        self.continueTimeout = nil
    }

    private static func framing(_ request: ExchangeRequest) throws(RequestError) -> Framing {
        let length = request.head.fields.single("Content-Length")
        let isCoded = request.head.fields["Transfer-Encoding"] != nil
        // A caller may request chunked coding by the field, but no other coding, and not together with a length.
        guard !length.isRepeated else { throw .bodyLength }
        if isCoded {
            let codings = request.head.fields.values("Transfer-Encoding")
            guard length.first == nil, codings.allSatisfy({ $0.matchesIgnoringCase("chunked") }) else {
                throw .bodyLength
            }
        }
        let declared = length.first.flatMap { $0.decimal }
        if declared == nil, length.first != nil { throw .bodyLength }
        if let known = request.body.length, let declared, known != declared { throw .bodyLength }
        if let known = request.body.length, known < 0 { throw .bodyLength }
        if request.body.isNone { return Self.withoutBody(request.head, declared) }
        if isCoded { return .chunked }
        guard let length = request.body.length ?? declared else { return .chunked }
        return .length(length)
    }

    /// Methods that define a meaning for content send `Content-Length: 0` (RFC 9110 §8.6).
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

        package var defaultPort: UInt16 {
            switch self {
            case .http: 80
            case .https: 443
            }
        }
    }

    package var scheme: Scheme
    /// A name (A-labels, in small letters) or an address; IPv6 without brackets, perhaps with a zone (`fe80::1%eth0`).
    package var host: String
    package var port: UInt16
    /// Path of the Unix socket to connect to; host and port are then only used for the Host field and TLS.
    package var socketPath: String?

    /// - Parameter port: `nil` means the scheme's default.
    package init(_ scheme: Scheme, host: String, port: UInt16? = nil) {
        self.scheme = scheme
        self.host = host
        self.port = port ?? scheme.defaultPort
    }

    /// The value of the Host field, which omits the scheme's default port, and the zone of an address (RFC 6874 §4).
    package var authority: String {
        let name = self.host.utf8.span
        let isIPv6 = name.indices.contains { name[$0] == 0x3A }
        let host = isIPv6 ? "[" + self.host.prefix { $0 != "%" } + "]" : self.host
        return self.port == self.scheme.defaultPort ? host : host + ":" + String(self.port)
    }
}

/// TLS settings of a connection. Connections of the same context are interchangeable.
package struct SecureSetup: Sendable {
    /// Its verification callbacks go to the consumer of the exchange that opens the connection.
    package var context: TLSContext
    /// The name for SNI and verification; `nil` means the origin's host.
    package var serverName: String?
    /// Key of the session cache; `nil` disables resumption.
    package var resumptionKey: String?
    /// For the handshake, without the time that callbacks take to answer. Default: 30 seconds.
    package var timeout: Duration = .seconds(30)

    package init(context: TLSContext) {
        self.context = context
    }
}
