extension Challenge {
    /// Octets of one line that are read, challenges in all, and parameters of one challenge.
    package static let lineLimit = 65_536
    package static let countLimit = 32
    package static let parameterLimit = 64

    /// The challenges of all the lines of one field, in their order (RFC 9110 §11.6.1).
    ///
    /// Commas part both challenges and parameters, so that what follows a word decides what it is. What cannot be
    /// understood is stepped over up to the next comma, and takes nothing with it that could be.
    package static func parse(_ lines: [String]) -> [Self] {
        var challenges: [Self] = []
        for line in lines where line.utf8.count <= self.lineLimit {
            var reading = ChallengeReading(line)
            challenges += reading.challenges(limit: self.countLimit - challenges.count)
        }
        return challenges
    }

    /// Those whose scheme is among `schemes`, and that can be answered, the strongest first; of equal ones the server's
    /// order holds, which is how it tells what it prefers (RFC 7616 §3.7).
    ///
    /// Whoever turns one down goes on to the next.
    package static func ranked(_ challenges: [Self], supporting schemes: Set<AuthenticationScheme>) -> [Self] {
        challenges.filter { schemes.contains($0.scheme) && $0.isAnswerable }
            .sorted { $0.scheme.strength > $1.scheme.strength }
    }

    /// Those that are answered here; where there is none, those that are known by name alone, so that a credential for
    /// them can be refused with a word.
    package static func asked(_ lines: [String]) -> [Self] {
        let all = self.parse(lines)
        let answered = self.ranked(all, supporting: [.basic, .digest])
        return answered.isEmpty ? self.ranked(all, supporting: [.ntlm, .negotiate]) : answered
    }

    private var isAnswerable: Bool {
        switch self.scheme {
        case .basic: self.realm != nil
        case .digest: DigestChallenge(self) != nil
        case .ntlm, .negotiate, .other: true
        }
    }
}
