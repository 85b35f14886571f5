import GatewayConfiguration
import GatewayTestSupport
import TestSupport
import Testing

@Suite("Hostile configurations")
struct ConfigurationBoundsTests {
    private func problems(_ bytes: [UInt8]) -> [String] {
        do throws(ConfigurationProblems) {
            _ = try ConfigurationReader.read(bytes, file: "c.yaml")
            return []
        } catch {
            return error.all.map(\.description)
        }
    }

    @Test func configurationBeyondAMebibyteIsRefused() {
        let problems = self.problems([UInt8](repeating: 0x23, count: 1_048_577))
        #expect(problems == ["c.yaml: expected at most 1 MiB of configuration, found more"])
        #expect(self.problems([UInt8](repeating: 0x23, count: 1_048_576)).count == 2)
    }

    @Test func invalidUTF8IsRefused() {
        #expect(
            self.problems([0x61, 0x3A, 0x20, 0xFF]) == [
                "c.yaml: expected text in UTF-8, found other bytes; save the file as UTF-8"
            ])
    }

    @Test(arguments: [17, 999, 1001, 100_000])
    func deepNestingIsRefused(depth: Int) {
        let text = "a: " + String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
        #expect(self.problems([UInt8](text.utf8)).count == 1)
        let keys = String(repeating: "{? ", count: depth)
        #expect(self.problems([UInt8](keys.utf8)).count == 1)
    }

    @Test(arguments: [17, 1001]) func problemOfDeepNestingNamesTheLimit(depth: Int) throws {
        let text = "a: " + String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
        let problem = try #require(self.problems([UInt8](text.utf8)).first)
        #expect(problem.hasPrefix("c.yaml:1:"))
        #expect(problem.hasSuffix(": expected at most 16 levels and 50000 values, found more"))
    }

    @Test func aliasBombIsRefused() {
        let levels =
            ["a: &a [x, x]"]
            + (1..<30).map { "a\($0): &a\($0) [*a\($0 == 1 ? "" : "\($0 - 1)"), *a\($0 == 1 ? "" : "\($0 - 1)")]" }
        #expect(
            self.problems([UInt8](levels.joined(separator: "\n").utf8)) == [
                "c.yaml: expected at most 16 aliases (*name), found more; write some values out in full"
            ])
        // YAML ends lines at the separators of Unicode too.
        let separated = levels.joined(separator: "\n").replacing(" *", with: "\u{2028}*")
            .replacing("[*", with: "[\u{85}*")
        #expect(
            self.problems([UInt8](separated.utf8)) == [
                "c.yaml: expected at most 16 aliases (*name), found more; write some values out in full"
            ])
        // As many as may be, five levels of three: each value is looked at, and there are few of them.
        let few =
            ["a0: &a0 x"] + (1...5).map { "a\($0): &a\($0) [*a\($0 - 1), *a\($0 - 1), *a\($0 - 1)]" } + [
                "? *a5", ": 1",
            ]
        #expect(self.problems([UInt8](few.joined(separator: "\n").utf8)).count == 1)
    }

    @Test func tooManyValuesAreRefused() {
        let text = "a: [" + String(repeating: "x,", count: 200_000) + "]"
        let problems = self.problems([UInt8](text.utf8))
        #expect(problems.count == 1)
        #expect(problems.first?.hasSuffix("expected at most 16 levels and 50000 values, found more") == true)
    }

    @Test(arguments: 0..<24)
    func anyDamageToAConfigurationGivesAConfigurationOrProblems(block: Int) throws {
        let texts = try [ConfigurationSamples.everything] + ConfigurationSamples.examples.map(ConfigurationSamples.text)
        for round in 0..<50 {
            let seed = UInt64(block * 50 + round)
            var generator = SeededGenerator(seed: seed)
            let text = texts[Int.random(in: 0..<texts.count, using: &generator)]
            let damaged = self.damage([UInt8](text.utf8), using: &generator)
            let problems = self.problems(damaged)
            #expect(problems == self.problems(damaged), "seed \(seed) is told differently a second time")
            for problem in problems {
                #expect(problem.hasPrefix("c.yaml"), "seed \(seed): \(problem)")
                #expect(!problem.contains("\n"), "seed \(seed): \(problem)")
            }
        }
    }

    /// A few bytes changed, lost, doubled, or moved.
    private func damage(_ bytes: [UInt8], using generator: inout SeededGenerator) -> [UInt8] {
        let spice = [UInt8]("\n \t:-[]{},*&!|>'\"%@`#?0987654321/.~ñ\u{0}\u{7F}".utf8)
        var bytes = bytes
        for _ in 0..<Int.random(in: 1...6, using: &generator) where !bytes.isEmpty {
            let place = Int.random(in: 0..<bytes.count, using: &generator)
            let end = min(bytes.count, place + Int.random(in: 1...20, using: &generator))
            switch Int.random(in: 0..<6, using: &generator) {
            case 0: bytes[place] = spice[Int.random(in: 0..<spice.count, using: &generator)]
            case 1: bytes.insert(spice[Int.random(in: 0..<spice.count, using: &generator)], at: place)
            case 2: bytes.removeSubrange(place..<end)
            case 3: bytes.insert(contentsOf: bytes[place..<end], at: Int.random(in: 0..<bytes.count, using: &generator))
            case 4: bytes[place] = UInt8.random(in: .min ... .max, using: &generator)
            default: bytes.removeSubrange(place...)
            }
        }
        return bytes
    }

    @Test(arguments: 0..<8)
    func anyTextForAnyValueIsReadOrRefused(block: Int) {
        let pieces = [
            "ws", "wss", "unix", "tcp", "+", "://", "/", ":", "[", "]", "{", "}", "...", "*", ".", "a", "ä", "🜁", "0",
            "65536", "999999999999999999",
            "%", "%4", "%41", "@", "?", "#", "\u{0}", "\r\n", "e\u{301}", "sha256/", "=", "s", "ms", "KiB", "none", "-",
            "::", "localhost",
        ]
        for round in 0..<500 {
            var generator = SeededGenerator(seed: UInt64(block * 500 + round))
            let count = Int.random(in: 0...8, using: &generator)
            let text = (0..<count).map { _ in pieces[Int.random(in: 0..<pieces.count, using: &generator)] }.joined()
            // The normal form of a URL parses as the same URL.
            if let url = try? EndpointURL(text) {
                #expect((try? EndpointURL(url.description)) == url, "\(text.debugDescription)")
            }
            if let pattern = try? PathPattern(parsing: text),
                !pattern.description.contains(where: { !$0.isASCII || $0 == "%" })
            {
                #expect((try? PathPattern(parsing: pattern.description)) == pattern, "\(text.debugDescription)")
            }
            if let duration = DurationText(parsing: text) {
                #expect(DurationText(parsing: duration.description) == duration, "\(text.debugDescription)")
            }
            if let size = SizeText(parsing: text) {
                #expect(SizeText(parsing: size.description) == size, "\(text.debugDescription)")
            }
            _ = try? ListenURL(text)
            _ = try? ValueSyntax<AddressBlock>.addressBlock.parse(text)
            _ = try? ValueSyntax<OriginPattern>.originPattern.parse(text)
            _ = try? ValueSyntax<HostPattern>.hostPattern.parse(text)
            _ = try? ValueSyntax<PublicKeyPin>.publicKeyPin.parse(text)
            _ = try? ValueSyntax<ExtraHeader>.headerLine.parse(text)
        }
    }
}
