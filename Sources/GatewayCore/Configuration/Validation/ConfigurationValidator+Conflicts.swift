extension ConfigurationValidator {
    /// What two routes must not share.
    private struct Claim: Hashable {
        let host: HostPattern?
        /// The path with its parameters' names left out, as they make no difference to what it matches.
        let shape: PathPattern
    }

    /// Two routes that answer the same requests: the second would never be taken.
    func validateDistinctness() {
        var claims: [Claim: [Int]] = [:]
        for (index, route) in self.configuration.routes.enumerated() {
            let path = Self.routes.index(index)
            guard let pattern = route.path,
                [RouteKey.path, .host, .listeners].allSatisfy({ self.problems.isSound(path.key($0)) })
            else { continue }
            let claim = Claim(host: route.host, shape: pattern.shape)
            let earlier = claims[claim, default: []]
            if let rival = earlier.first(where: { self.shareListener(self.configuration.routes[$0], route) }) {
                self.problems.add(
                    at: path.key(RouteKey.path), expected: "a host and path that no other route has",
                    found: "\(route.host.map { "\($0)" } ?? "")\(pattern), as in \(Self.routes.index(rival))",
                    remedy: "change one of them")
            }
            claims[claim] = earlier + [index]
        }
    }

    private func shareListener(_ one: RouteConfiguration, _ other: RouteConfiguration) -> Bool {
        one.listeners.isEmpty || other.listeners.isEmpty || !Set(one.listeners).isDisjoint(with: other.listeners)
    }
}

extension PathPattern {
    fileprivate var shape: PathPattern {
        PathPattern(
            self.segments.map { segment in
                switch segment {
                case .literal: segment
                case .parameter: .parameter("")
                case .rest: .rest("")
                }
            })
    }
}
