import ByteKernels
import TLSEngine

enum ClientHelloCheck {
    static func run(_ bytes: [UInt8]) throws(InvariantViolation) {
        for limit in [64, 512, 16 * 1024] {
            let finding = try InputSplit.expectSame(bytes, "limit \(limit)") { split throws(InvariantViolation) in
                try self.finding(bytes, split, limit: limit)
            }
            // At worst a record for each byte of the message, followed by one of the maximum length.
            if finding == .incomplete {
                let most = 6 * (limit + 4) + 5 + 16_384
                try InvariantViolation.expect(bytes.count < most, "limit \(limit): waits for more than \(most) bytes")
            }
        }
    }

    private static func finding(
        _ bytes: [UInt8], _ split: InputSplit, limit: Int
    ) throws(InvariantViolation) -> ClientHelloSniffer.Detection {
        var sniffer = ClientHelloSniffer(limit: limit)
        let findings = bytes.withRawSpan { span in
            split.ends.map { sniffer.examine(span.extracting(0..<$0)) }
        }
        let settled = findings.drop { $0 == .incomplete }
        try InvariantViolation.expect(settled.allSatisfy { $0 == settled.first }, "\(split): a finding did not stay")
        return settled.first ?? .incomplete
    }
}
