import GatewayConfiguration
import GatewayTestSupport
import TestSupport
import Testing

@Suite("The declarations of configuration keys")
struct ConfigurationSchemaTests {
    private func entry(_ section: ConfigurationSection) throws -> ConfigurationSchema.Section {
        guard case .section(let entry) = ConfigurationSchema.entry(of: section) else {
            throw ConfigurationSchemaTests.NoSection()
        }
        return entry
    }

    private struct NoSection: Error {}

    @Test func everyKeyIsDeclaredOnceWithAText() {
        var seen: Set<String> = []
        for (name, key) in ConfigurationSchema.keys {
            #expect(seen.insert(name).inserted, "\(name)")
            #expect(key.text.hasSuffix("."), "\(name)")
            #expect(key.example != "", "\(name)")
        }
        #expect(seen.count > 130)
    }

    /// Reads each example as the only key of its section, and ignores problems that other keys cause.
    @Test func everyExampleHasTheSyntaxOfItsKey() {
        for (name, key) in ConfigurationSchema.keys {
            let steps = name.split(separator: ".").dropLast().map { step in
                step.hasSuffix("[]") ? ("\(step.dropLast(2)): [{", "}]") : ("\(step): {", "}")
            }
            let text = steps.map(\.0).joined() + "\(key.name): \(key.example)" + steps.reversed().map(\.1).joined()
            let path = name.replacing("[]", with: "[0]")
            let problems = ConfigurationSamples.problems(text).filter {
                $0.contains(" \(path): expected a") || $0.contains(" \(path)[0]: ") || $0.contains(" \(path)[0].")
                    || $0.contains("syntax error")
            }
            #expect(problems == [], "\(text)")
        }
    }

    @Test func defaultsAreThoseOfTheSettings() throws {
        let listener = try self.entry(.listeners)
        #expect(listener.key("backlog")?.defaultText == "`4096`")
        #expect(listener.key("max-header-size")?.defaultText == "`16KiB`")
        #expect(listener.key("user-timeout")?.defaultText == "`5m`")
        #expect(listener.key("accept-rate")?.defaultText == "`50000/s`")
        #expect(listener.key("forwarding-trusted")?.defaultText == "`[127.0.0.0/8, ::1/128]`")
        #expect(listener.key("name")?.defaultText == nil)
        let route = try self.entry(.routes)
        #expect(route.key("half-close")?.defaultText == "`close`")
        #expect(route.key("origins")?.defaultText == "all")
    }

    @Test func rangesAreThoseThatTheReaderChecks() throws {
        let listener = try self.entry(.listeners)
        #expect(listener["backlog"] == .value(.integer(1...65_535)))
        #expect(listener["max-header-size"] == .value(.size(1024...1_048_576)))
        #expect(listener["plain-and-tls"] == .value(.boolean))
        #expect(listener["accept-rate"] == .value(.rate(1...10_000_000)))
        let route = try self.entry(.routes)
        #expect(route["ping-interval"] == .value(.orNone(.duration(.seconds(1) ... .seconds(86_400)))))
        #expect(route["half-close"] == .value(.choice(HalfClose.allCases.map(\.rawValue))))
    }

    @Test func schemaListsEveryFormOfAValue() throws {
        let route = try self.entry(.routes)
        guard case .either(let compress)? = route["compress"], case .either(let headers)? = route["headers"],
            case .list(.either(let endpoint))? = try self.entry(.upstreams)["endpoints"]
        else {
            Issue.record("one form where there are several")
            return
        }
        #expect(compress.first == .value(.boolean))
        #expect(compress.last.map { if case .section(let section) = $0 { section.name } else { "" } } == "Compression")
        #expect(headers.count == 2 && endpoint.count == 2)
    }

    @Test func requiredKeysAreThoseThatTheReaderMisses() throws {
        func required(_ section: ConfigurationSection) throws -> [String] {
            try self.entry(section).keys.filter(\.isRequired).map(\.name)
        }
        #expect(try required(.listeners) == ["name", "listen"])
        // There may be files in place of a target.
        #expect(try required(.routes) == ["name"])
        #expect(try required(.upstreams) == ["name"])
        guard case .section(let tls)? = try self.entry(.listeners)["tls"] else { return }
        // Certificates may be written in its place.
        #expect(tls.keys.filter(\.isRequired).isEmpty)
    }
}
