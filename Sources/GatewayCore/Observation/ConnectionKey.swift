/// The name of one connection in the REST interface: `17` for one that was accepted or opened by command, `17u` for the
/// one that a tunnel opened to its upstream on behalf of `17`. Unique in the process.
package struct ConnectionKey: Hashable, Sendable, Comparable {
    /// Also stands in the log.
    package let number: UInt64
    package let side: TunnelSide

    package init(_ number: UInt64, _ side: TunnelSide = .downstream) {
        self.number = number
        self.side = side
    }

    /// Takes back what `description` gives; `nil` for anything else.
    package init?(_ text: some StringProtocol) {
        let bytes = Array(text.utf8.prefix(22))
        let isUpstream = bytes.last == UInt8(ascii: "u")
        let digits = isUpstream ? bytes.dropLast() : bytes[...]
        guard (1...20).contains(digits.count), digits.first != UInt8(ascii: "0"),
            digits.allSatisfy({ (0x30...0x39).contains($0) }),
            let number = UInt64(String(decoding: digits, as: UTF8.self))
        else { return nil }
        self.init(number, isUpstream ? .upstream : .downstream)
    }

    package static func < (left: ConnectionKey, right: ConnectionKey) -> Bool {
        if left.number != right.number { return left.number < right.number }
        return left.side == .downstream && right.side == .upstream
    }
}

extension ConnectionKey: CustomStringConvertible {
    package var description: String {
        self.side == .downstream ? "\(self.number)" : "\(self.number)u"
    }
}
