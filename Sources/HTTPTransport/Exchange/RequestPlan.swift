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
    package init(_ order: ExchangeOrder) throws(RequestFault) {
        if let fault = order.head.fault() { throw fault }
        guard !order.origin.host.isEmpty, order.origin.port > 0, order.origin.scheme == .http || order.secure != nil
        else { throw .origin }
        self.framing = try Self.framing(order)
        var head = RequestHead(method: order.head.method, target: order.head.target)
        head.fields.reserveCapacity(order.head.fields.count + 3)
        if order.head.first("host") == nil { head.fields.append(HeaderField("Host", order.origin.authority)) }
        for field in order.head.fields where !field.isNamed("transfer-encoding") { head.fields.append(field) }
        switch self.framing {
        case .none: break
        case .length(let length):
            if head.first("content-length") == nil { head.fields.append(HeaderField("Content-Length", "\(length)")) }
        case .chunked:
            head.fields.append(HeaderField("Transfer-Encoding", "chunked"))
        }
        let expected = head.first("expect").map { ASCIIText.equal($0, small: "100-continue") }
        if self.framing == .none || self.framing == .length(0) || (order.continueTimeout == nil && expected != true) {
            self.continueTimeout = nil
        } else {
            self.continueTimeout = order.continueTimeout ?? Self.continueTimeout
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

    private static func framing(_ order: ExchangeOrder) throws(RequestFault) -> Framing {
        let lengths = order.head.fields.filter { $0.isNamed("content-length") }
        let codings = order.head.fields.filter { $0.isNamed("transfer-encoding") }
        // A caller may ask for chunks by the field, but for no other coding and not beside a length.
        guard codings.allSatisfy({ ASCIIText.equal($0.value, small: "chunked") }), codings.isEmpty || lengths.isEmpty,
            lengths.count <= 1
        else { throw .bodyLength }
        let said = lengths.first.flatMap { ASCIIText.number($0.value) }
        if said == nil, !lengths.isEmpty { throw .bodyLength }
        if let known = order.body.length, let said, known != said { throw .bodyLength }
        if let known = order.body.length, known < 0 { throw .bodyLength }
        if order.body.isNone { return Self.withoutBody(order.head, said) }
        if !codings.isEmpty { return .chunked }
        guard let length = order.body.length ?? said else { return .chunked }
        return .length(length)
    }

    /// A method that gives its body a meaning says that there is none (RFC 9110 §8.6).
    private static func withoutBody(_ head: RequestHead, _ said: Int64?) -> Framing {
        switch head.method {
        case "POST", "PUT", "PATCH": .length(0)
        default: said == nil ? .none : .length(0)
        }
    }
}
