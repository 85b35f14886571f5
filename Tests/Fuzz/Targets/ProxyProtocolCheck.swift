import ByteKernels
import GatewayConfiguration
import GatewayCore
import StreamTransport

enum ProxyProtocolCheck {
    private static let decoder = ProxyHeaderDecoder()

    static func run(_ bytes: [UInt8]) throws(InvariantViolation) {
        let answer = try InputSplit.expectSame(bytes, "header") { split throws(InvariantViolation) in
            try self.answer(bytes, split)
        }
        switch answer {
        case .incomplete:
            try InvariantViolation.expect(bytes.count < self.decoder.limit, "waits for more than its limit")
        case .absent, .violation: break
        case .header(let header, let length):
            try InvariantViolation.expect(
                (0...min(bytes.count, self.decoder.limit)).contains(length), "length \(length)")
            for version in ProxyProtocolVersion.allCases { try self.expectTheSame(header, written: version) }
        }
    }

    private static func answer(_ bytes: [UInt8], _ split: InputSplit) throws(InvariantViolation) -> ProxyHeaderResult {
        let answers = bytes.withRawSpan { span in
            split.ends.map { self.decoder.decode(span.extracting(0..<$0)) }
        }
        // Of no bytes at all nothing is known; the decoder is asked once there are some.
        let settled = zip(split.ends, answers).filter { $0.0 > 0 }.map { $0.1 }.drop { $0 == .incomplete }
        try InvariantViolation.expect(settled.allSatisfy { $0 == settled.first }, "\(split): an answer did not stay")
        return settled.first ?? .incomplete
    }

    /// Our own header for these addresses reads back as they are.
    private static func expectTheSame(
        _ header: ProxyHeader, written version: ProxyProtocolVersion
    ) throws(InvariantViolation) {
        if case .proxied(.unix(let source), .unix(let destination)) = header {
            // Version 1 has no form for them, and text that was no UTF-8 may have become longer than a field.
            guard version != .v1, max(source.utf8.count, destination.utf8.count) <= 107 else { return }
        }
        let written = header.encoded(version)
        let again = written.withRawSpan { self.decoder.decode($0) }
        try InvariantViolation.expect(
            again == .header(header, length: written.count), "\(header) written as \(version) reads \(again)")
    }
}
