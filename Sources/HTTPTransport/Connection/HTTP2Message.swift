import ByteKernels
import HTTP2Engine
import StreamTransport
import TLSEngine
import WireText

extension HTTP2FieldBlock {
    /// The head of a request (RFC 9113 §8.3.1). `Host` becomes `:authority`; credentials are kept out of compression
    /// tables (RFC 7541 §7.1.3).
    /// - Parameter priority: 0 to 1; sent as a `priority` field unless it is the default or the head has one.
    init(_ head: RequestHead, to origin: ServerEndpoint, priority: Float) {
        self.init()
        self.append(name: ":method", value: head.method)
        self.append(name: ":scheme", value: origin.scheme.rawValue)
        self.append(name: ":authority", value: head.fields["Host"] ?? origin.authority)
        self.append(name: ":path", value: head.target)
        let named = head.fields.list("Connection")
        for field in head.fields where !Self.isAboutConnection(field, named: named) {
            let isCredential = field.isNamed("authorization") || field.isNamed("proxy-authorization")
            self.append(name: field.name, value: field.value, isSensitive: isCredential)
        }
        let urgency = RequestUrgency(priority: priority)
        if urgency != .default, head.fields["Priority"] == nil {
            self.append(name: "priority", value: urgency.fieldValue)
        }
    }

    /// Whether HTTP/2 forbids or replaces the field (RFC 9113 §8.2.2).
    /// - Parameter named: the names in the `Connection` field.
    private static func isAboutConnection(_ field: FieldLine, named: [String]) -> Bool {
        switch field.name.utf8.count {
        case 2 where field.isNamed("te"): return !field.value.matchesIgnoringCase("trailers")
        case 4 where field.isNamed("host"), 7 where field.isNamed("upgrade"),
            10 where field.isNamed("connection") || field.isNamed("keep-alive"),
            14 where field.isNamed("http2-settings"), 16 where field.isNamed("proxy-connection"),
            17 where field.isNamed("transfer-encoding"):
            return true
        default: return named.contains { field.isNamed($0) }
        }
    }

    /// All fields but the pseudo-header fields.
    var fieldLines: FieldLines {
        var lines: [FieldLine] = []
        lines.reserveCapacity(self.count)
        self.readFields { name, value in
            guard !name.isEmpty, name[0] != UInt8(ascii: ":") else { return }
            lines.append(FieldLine(String(tolerant: name.bytes), received: value.bytes))
        }
        return FieldLines(lines)
    }
}

extension ResponseHead {
    /// - Returns: `nil` without a status of three digits.
    init?(_ block: HTTP2FieldBlock) {
        guard let status = block.status, status >= 100 else { return nil }
        self.init(version: HTTPVersion(2, 0), status: status, fields: block.fieldLines)
    }
}

/// How urgent a response is (RFC 9218 §4.1): 0, the most urgent, to 7.
package struct RequestUrgency: Equatable, Sendable {
    package static let `default` = Self(level: 3)

    package let level: Int

    private init(level: Int) {
        self.level = level
    }

    /// - Parameter priority: 0 to 1; 0.5 is the default urgency.
    package init(priority: Float) {
        let priority = min(max(priority, 0), 1)
        self.level =
            priority >= 0.5
            ? Int(((1 - priority) * 6).rounded()) : 3 + Int(((0.5 - priority) * 8).rounded())
    }

    /// Value of the `priority` field and of PRIORITY_UPDATE.
    package var fieldValue: String { "u=\(self.level)" }
}

/// Why HTTP/2 ended an exchange without a whole response.
package enum HTTP2Error: Sendable, Hashable {
    /// The server reset the stream, or ended the connection, with this code of RFC 9113 §7.
    case reset(code: String)
    /// The server has not processed the request (REFUSED_STREAM, or GOAWAY), which was repeated up to the limit, or whose
    /// body cannot be read again.
    case refused
    /// The server demands fewer requests (ENHANCE_YOUR_CALM).
    case overload
    /// The server requires HTTP/1.1 for the request (HTTP_1_1_REQUIRED).
    case http11Required
    /// The server broke a rule of HTTP/2.
    case violation(String)
    /// The server did not send its SETTINGS in time.
    case settingsTimeout
    case outOfMemory

    init(_ code: HTTP2ErrorCode) {
        self =
            switch code {
            case .refusedStream: .refused
            case .enhanceYourCalm: .overload
            case .http11Required: .http11Required
            default: .reset(code: code.description)
            }
    }

    init(_ failure: HTTP2Failure) {
        switch failure {
        case .violation(_, let text): self = .violation(text)
        case .flooded: self = .violation("more frames than the limit for their content")
        case .noPreface: self = .violation("no connection preface")
        case .outOfMemory: self = .outOfMemory
        }
    }
}
