import ByteKernels
import TLSEngine

enum ClientHelloCheck {
    static func run(_ bytes: [UInt8]) throws(FuzzFault) {
        for limit in [64, 512, 16 * 1024] {
            let finding = try InputSplit.expectSame(bytes, "limit \(limit)") { split throws(FuzzFault) in
                try self.finding(bytes, split, limit: limit)
            }
            // At worst a record for each byte of the message, and one as long as records are behind it.
            if finding == .incomplete {
                let most = 6 * (limit + 4) + 5 + 16_384
                try FuzzFault.expect(bytes.count < most, "limit \(limit): waits for more than \(most) bytes")
            }
        }
    }

    private static func finding(
        _ bytes: [UInt8], _ split: InputSplit, limit: Int
    ) throws(FuzzFault) -> ClientHelloSniffer.Detection {
        var sniffer = ClientHelloSniffer(limit: limit)
        let findings = bytes.withRawSpan { span in
            split.ends.map { sniffer.examine(span.extracting(0..<$0)) }
        }
        let settled = findings.drop { $0 == .incomplete }
        try FuzzFault.expect(settled.allSatisfy { $0 == settled.first }, "\(split): a finding did not stay")
        return settled.first ?? .incomplete
    }
}
