/// Finds the word somebody probably meant.
package enum Spelling {
    /// - Returns: the candidate with the fewest insertions, deletions, replacements and swaps of neighbours away from
    /// `word`,
    ///   if that is at most a third of its length (and 3); the first of equals.
    package static func nearest(to word: String, among candidates: [String]) -> String? {
        let letters = Array(word.lowercased().utf8.prefix(64))
        var best: (distance: Int, word: String)?
        for candidate in candidates {
            let distance = Self.distance(letters, Array(candidate.utf8))
            let limit = min(3, max(1, candidate.utf8.count / 3))
            if distance <= limit, distance < best?.distance ?? .max { best = (distance, candidate) }
        }
        return best?.word
    }

    /// Optimal string alignment distance, a row at a time.
    private static func distance(_ a: [UInt8], _ b: [UInt8]) -> Int {
        guard !a.isEmpty, !b.isEmpty else { return max(a.count, b.count) }
        var older: [Int] = []
        var previous = Array(0...b.count)
        for i in 1...a.count {
            var row = [i]
            for j in 1...b.count {
                let replaced = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)
                var cost = min(previous[j] + 1, row[j - 1] + 1, replaced)
                if i > 1, j > 1, a[i - 1] == b[j - 2], a[i - 2] == b[j - 1] { cost = min(cost, older[j - 2] + 1) }
                row.append(cost)
            }
            older = previous
            previous = row
        }
        return previous[b.count]
    }
}
