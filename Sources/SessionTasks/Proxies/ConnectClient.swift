import ByteKernels
import WebSocketProtocol

/// The client of an HTTP proxy that asks for a tunnel with `CONNECT` (RFC 9110 §9.3.6).
package struct ConnectClient: ProxyClient {
    /// Bytes of a refusal's plain text that are read and reported.
    package static let textLimit = 512
    /// Bytes of content behind which a connection is used again.
    package static let skipLimit: Int64 = 64 << 10
    /// Interim responses that are skipped.
    package static let interimLimit = 8

    private enum State {
        case initial
        case awaitingHead(ResponseParser, interim: Int)
        /// The text of a refusal, of which `missing` more bytes are read.
        case awaitingText(ResponseHead, [UInt8], missing: Int)
        /// The content, not wanted, of a 407 that continues an authentication.
        case skipping(ResponseHead, missing: Int)
        /// The request is to be repeated.
        case challenged
        case finished
    }

    private var state = State.initial
    private let authority: String
    private var request: [UInt8]
    private let limits: HeadLimits

    /// - Parameter fields: of the request besides `Host`, such as `Proxy-Authorization`; none of the server's.
    /// - Throws: `.inexpressible` for a host name that a request target cannot contain, and for a malformed field.
    package init(
        to destination: ProxyDestination, fields: [FieldLine], limits: HeadLimits = HeadLimits()
    ) throws(ProxyFailure) {
        guard let authority = destination.authority else {
            throw .inexpressible("this host name cannot be written in a request to an HTTP proxy")
        }
        self.authority = authority
        self.request = try Self.request(authority, fields)
        self.limits = limits
    }

    private static func request(_ authority: String, _ fields: [FieldLine]) throws(ProxyFailure) -> [UInt8] {
        var head = HeadWriter(method: "CONNECT", target: authority)
        head.add("Host", authority)
        for field in fields {
            guard field.isWellFormed else { throw .inexpressible("the value of \(field.name) is no field value") }
            head.add(field)
        }
        return head.finished()
    }

    package mutating func begin() -> ProxyAction {
        guard case .initial = self.state else { return .wait }
        self.state = .awaitingHead(ResponseParser(limits: self.limits), interim: 0)
        return .send(self.request)
    }

    package mutating func bytesReceived(_ bytes: RawSpan, consumed: inout Int) -> ProxyAction {
        switch self.state {
        case .initial, .challenged:
            guard consumed < bytes.byteCount else { return .wait }
            return self.fail(.violation("it sent bytes before the client did"))
        case .awaitingHead(let parser, let interim): return self.readHead(bytes, &consumed, parser, interim)
        case .awaitingText(let head, let text, let missing):
            let count = min(missing, bytes.byteCount - consumed)
            let received = text + [UInt8](bytes.extracting(consumed..<(consumed + count)))
            consumed += count
            self.state = .awaitingText(head, received, missing: missing - count)
            return count == missing ? self.refuse() : .wait
        case .skipping(let head, let missing):
            let count = min(missing, bytes.byteCount - consumed)
            consumed += count
            self.state = .skipping(head, missing: missing - count)
            guard count == missing else { return .wait }
            self.state = .challenged
            return .authorize(head)
        case .finished: return .wait
        }
    }

    package mutating func authorized(_ fields: [FieldLine]) -> ProxyAction {
        guard case .challenged = self.state else { return .wait }
        do throws(ProxyFailure) {
            self.request = try Self.request(self.authority, fields)
        } catch {
            return self.fail(error)
        }
        self.state = .initial
        return self.begin()
    }

    private mutating func readHead(
        _ bytes: RawSpan, _ consumed: inout Int, _ before: ResponseParser, _ interimBefore: Int
    ) -> ProxyAction {
        var (parser, interim) = (before, interimBefore)
        do throws(HeadViolation) {
            while let head = try parser.parse(bytes, consumed: &consumed) {
                guard head.isInterim else { return self.headReceived(head, bytes, &consumed) }
                interim += 1
                guard interim <= Self.interimLimit else {
                    return self.fail(.violation("it sent too many interim responses"))
                }
            }
        } catch {
            return self.fail(.violation(error.explanation))
        }
        self.state = .awaitingHead(parser, interim: interim)
        return .wait
    }

    /// A 2xx has no content, whatever its fields say.
    private mutating func headReceived(
        _ head: ResponseHead, _ bytes: RawSpan, _ consumed: inout Int
    ) -> ProxyAction {
        if (200...299).contains(head.status) {
            self.state = .finished
            return .established
        }
        if head.continuesAuthentication, let length = Self.skippedLength(head) {
            self.state = .skipping(head, missing: length)
        } else {
            self.state = .awaitingText(head, [], missing: Self.textLength(head))
        }
        return self.bytesReceived(bytes, consumed: &consumed)
    }

    /// - Returns: `nil` if the connection cannot be used again, or only behind too much content.
    private static func skippedLength(_ head: ResponseHead) -> Int? {
        guard head.version > .http10, !head.fields.list("Connection", contains: "close"),
            !head.fields.list("Proxy-Connection", contains: "close"), head.fields["Transfer-Encoding"] == nil,
            let length = head.fields["Content-Length"]?.clampedDecimal(limit: Int64.max), length <= Self.skipLimit
        else { return nil }
        return Int(length)
    }

    /// Pages for people in front of browsers are not read.
    private static func textLength(_ head: ResponseHead) -> Int {
        guard head.fields["Content-Type"]?.beginsIgnoringCase("text/plain") == true,
            head.fields["Transfer-Encoding"] == nil, head.fields["Content-Encoding"] == nil
        else { return 0 }
        let length = head.fields["Content-Length"].map { $0.clampedDecimal(limit: Int64(Self.textLimit)) ?? 0 }
        return length.map { Int($0) } ?? Self.textLimit
    }

    package var isRefused: Bool {
        switch self.state {
        case .awaitingText, .skipping: true
        case .initial, .awaitingHead, .challenged, .finished: false
        }
    }

    package mutating func inputClosed() -> ProxyAction {
        switch self.state {
        case .initial, .awaitingHead, .challenged: self.fail(.closed)
        case .awaitingText: self.refuse()
        case .skipping(let head, _): self.fail(.refused(head, text: ""))
        case .finished: .wait
        }
    }

    package mutating func deadlinePassed() -> ProxyAction {
        switch self.state {
        case .initial, .awaitingHead, .challenged: self.fail(.timedOut)
        case .awaitingText: self.refuse()
        case .skipping(let head, _): self.fail(.refused(head, text: ""))
        case .finished: .wait
        }
    }

    private mutating func refuse() -> ProxyAction {
        guard case .awaitingText(let head, let bytes, _) = self.state else { return .wait }
        let text = String(decoding: bytes.filter { !$0.isControl || $0 == 0x0A }, as: UTF8.self)
        return self.fail(.refused(head, text: text.split(separator: "\n").joined(separator: " ")))
    }

    private mutating func fail(_ failure: ProxyFailure) -> ProxyAction {
        self.state = .finished
        return .fail(failure)
    }
}

extension ResponseHead {
    /// Whether it is a 407 with a token of NTLM or Negotiate, which the client answers on the same connection (RFC 4559 §5).
    fileprivate var continuesAuthentication: Bool {
        guard self.status == 407 else { return false }
        return self.fields.values("Proxy-Authenticate").contains { value in
            ["NTLM ", "Negotiate "].contains { value.beginsIgnoringCase($0) && value.utf8.count > $0.utf8.count }
        }
    }
}
