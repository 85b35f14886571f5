import HTTPSemantics

/// Each line of the input is a `WWW-Authenticate` field: parsed challenges keep the limits, and answers contain no line
/// end.
enum ChallengesCheck {
    static func run(_ bytes: [UInt8]) throws(InvariantViolation) {
        let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n", maxSplits: 40).map { String($0) }
        let challenges = Challenge.parse(lines)
        try InvariantViolation.expect(challenges.count <= Challenge.countLimit, "\(challenges.count) challenges")
        for challenge in challenges {
            let count = challenge.parameters.count
            try InvariantViolation.expect(count <= Challenge.parameterLimit, "\(count) parameters")
            try InvariantViolation.expect(!challenge.schemeName.isEmpty, "a challenge without a scheme")
            if let digest = DigestChallenge(challenge) { try self.answer(digest, lines) }
        }
        let ranked = Challenge.ranked(challenges, supporting: [.basic, .digest])
        try InvariantViolation.expect(
            ranked.allSatisfy { [.basic, .digest].contains($0.scheme) }, "a scheme nobody supports")
    }

    private static func answer(_ digest: DigestChallenge, _ lines: [String]) throws(InvariantViolation) {
        var session = DigestSession(digest, user: "Mufasa \"ü\"", password: "Circle of Life")
        let request = DigestRequest(method: "GET", target: "/dir/index.html", contentHash: "0123")
        for _ in 0..<2 {
            let value = session.fieldValue(for: request, clientNonce: "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ")
            try InvariantViolation.expect(value.hasPrefix("Digest "), "an answer that is no Digest")
            let breaks = value.utf8.contains { $0 == 0x0A || $0 == 0x0D || $0 == 0 }
            try InvariantViolation.expect(!breaks, "an answer of several lines")
            session.received(authenticationLines: lines)
        }
        _ = session.rechallenged(by: digest)
    }
}
