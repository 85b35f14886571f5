import GatewayConfiguration
import Testing

@Suite("The forms of configuration keys, learnt from their readers")
struct ConfigurationSchemaTests {
    private func entry(_ section: ConfigurationSection) throws -> ConfigurationSchema.Section {
        guard case .section(let entry) = ConfigurationSchema.entry(of: section) else {
            throw ConfigurationSchemaTests.NoSection()
        }
        return entry
    }

    private struct NoSection: Error {}

    private static func names<Key: CaseIterable & RawRepresentable<String>>(_ keys: Key.Type) -> [String] {
        keys.allCases.map(\.rawValue)
    }

    @Test func everyKeyHasAForm() throws {
        #expect(ConfigurationSchema.whole.keys.map(\.name) == Self.names(GatewayKey.self))
        #expect(try self.entry(.listeners).keys.map(\.name) == Self.names(ListenerKey.self))
        #expect(try self.entry(.routes).keys.map(\.name) == Self.names(RouteKey.self))
        #expect(try self.entry(.upstreams).keys.map(\.name) == Self.names(UpstreamKey.self))
        guard case .section(let control)? = ConfigurationSchema.whole["control"],
            case .section(let tls)? = control["tls"], case .section(let transfers)? = control["transfers"]
        else {
            Issue.record("control has no sections")
            return
        }
        #expect(control.keys.map(\.name) == Self.names(ControlKey.self))
        #expect(tls.keys.map(\.name) == Self.names(ServerTLSKey.self))
        #expect(transfers.keys.map(\.name) == Self.names(TransferKey.self))
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

    @Test func whatTakesSeveralFormsHasThemAll() throws {
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
        #expect(try required(.routes) == ["name", "target"])
        #expect(try required(.upstreams) == ["name"])
        guard case .section(let tls)? = try self.entry(.listeners)["tls"] else { return }
        // Certificates may be written in its place.
        #expect(tls.keys.filter(\.isRequired).isEmpty)
    }
}
