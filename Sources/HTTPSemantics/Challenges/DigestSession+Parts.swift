extension DigestSession {
    /// A2 of RFC 7616 §3.4.3, hashed.
    static func requestHash(
        _ request: DigestRequest, protection: DigestChallenge.Protection, algorithm: DigestAlgorithm
    ) -> String {
        switch protection {
        case .legacy, .auth: return algorithm.hexadecimal("\(request.method):\(request.target)")
        case .authInt:
            let content = request.contentHash ?? algorithm.hexadecimal("")
            return algorithm.hexadecimal("\(request.method):\(request.target):\(content)")
        }
    }

    /// `username`, in the form that holds it (RFC 7616 §3.4, §3.4.4).
    static func userParts(_ user: String, for challenge: DigestChallenge) -> [String] {
        if challenge.hashesUser {
            return ["username=\"\(challenge.algorithm.hexadecimal("\(user):\(challenge.realm)"))\"", "userhash=true"]
        }
        let isPlain = user.utf8.allSatisfy { (0x20...0x7E).contains($0) }
        if isPlain || !challenge.usesUTF8 { return ["username=\(self.quoted(user))"] }
        return ["username*=UTF-8''" + PercentCoding.encoded(user, allowing: ExtendedValue.isPlain)]
    }

    /// A quoted string; what it cannot hold is left out.
    static func quoted(_ text: String) -> String {
        var bytes: [UInt8] = [UInt8(ascii: "\"")]
        for byte in text.utf8 where !byte.isControl {
            if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { bytes.append(UInt8(ascii: "\\")) }
            bytes.append(byte)
        }
        bytes.append(UInt8(ascii: "\""))
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Eight digits, as `nc` wants them.
    static func hexadecimal(_ count: UInt32) -> String {
        let digits = String(count, radix: 16)
        return String(repeating: "0", count: 8 - digits.utf8.count) + digits
    }
}
