import GatewayConfiguration
import GatewayCore
import StreamTransport
import Testing

@Suite("Where connections opened by command may lead")
struct TargetRuleTests {
    private func rules(_ texts: String...) throws -> TargetRules {
        TargetRules(try texts.map { try ValueSyntax<TargetRule>.targetRule.parse($0) })
    }

    private func address(_ text: String, _ port: UInt16 = 80) throws -> SocketAddress {
        text.hasPrefix("/") ? .unix(path: text) : try #require(SocketAddress(literal: text, port: port))
    }

    @Test(arguments: [
        ("127.0.0.1", AddressKind.loopback), ("127.255.0.9", .loopback), ("::1", .loopback),
        ("::ffff:127.0.0.1", .loopback), ("10.1.2.3", .private), ("172.16.0.1", .private), ("172.31.255.255", .private),
        ("172.32.0.1", .global), ("192.168.9.9", .private), ("100.64.0.1", .private), ("100.128.0.1", .global),
        ("fd12::1", .private), ("fc00::1", .private), ("169.254.169.254", .special), ("169.254.1.1", .special),
        ("fe80::1", .special), ("fd00:ec2::254", .special), ("100.100.100.200", .special), ("168.63.129.16", .special),
        ("::ffff:169.254.169.254", .special), ("64:ff9b::a9fe:a9fe", .special), ("64:ff9b::808:808", .global),
        ("64:ff9b:1::808:808", .special), ("2002:a00:1::", .special), ("2002:808:808::", .global),
        ("0.0.0.0", .special), ("::", .special), ("0.1.2.3", .special), ("224.0.0.1", .special), ("ff02::1", .special),
        ("255.255.255.255", .special), ("240.0.0.1", .special), ("192.0.0.192", .special), ("192.0.2.1", .special),
        ("198.18.0.1", .special), ("2001::1", .special), ("2001:db8::1", .special), ("::127.0.0.1", .special),
        ("8.8.8.8", .global), ("2606:4700::1111", .global), ("2001:4860:4860::8888", .global),
        ("3fff::1", .special),
        ("fec0::1", .special), ("5f00::1", .special),
    ])
    func addressesAreClassified(_ text: String, _ kind: AddressKind) throws {
        #expect(try self.address(text).ipAddress?.kind == kind)
    }

    @Test func rulesAreReadAsTheyAreWritten() throws {
        let texts = [
            "public", "loopback", "private", "private:443", "10.0.0.0/8", "10.0.0.0/8:5432", "192.0.2.1/32:1-1023",
            "fd00::/8", "[fd00::/8]:8000-8999", "example.com", "*.example.com:443", "unix:///run/app.sock",
            "unix:///run/app/*",
        ]
        let rules = TargetRules(texts: texts)
        #expect(rules.texts == texts)
        // What is no rule permits nothing, and the others stay.
        #expect(TargetRules(texts: ["special", "", "a b", "loopback"]).texts == ["loopback"])
    }

    @Test func localCallersReachThisMachineAndTheInternet() throws {
        let rules = TargetRules.localDefault
        for text in ["127.0.0.1", "::1", "8.8.8.8"] {
            #expect(rules.allows(try self.address(text), askedFor: nil), "\(text)")
        }
        for text in [
            "10.0.0.1", "169.254.169.254", "fd00:ec2::254", "0.0.0.0", "fe80::1", "/run/app.sock",
            "/var/run/docker.sock",
        ] {
            #expect(!rules.allows(try self.address(text), askedFor: nil), "\(text)")
            #expect(!rules.allows(try self.address(text), askedFor: "rebound.example"), "\(text)")
        }
    }

    @Test func remoteCallersReachOnlyTheInternet() throws {
        for text in ["127.0.0.1", "::1", "10.0.0.1", "/run/app.sock"] {
            #expect(!TargetRules.remoteDefault.allows(try self.address(text), askedFor: nil), "\(text)")
        }
        #expect(TargetRules.remoteDefault.allows(try self.address("8.8.8.8"), askedFor: nil))
    }

    @Test func aBlockIsForItsAddressesAndPorts() throws {
        let rules = try self.rules("10.0.0.0/8:5432", "[fd00::/8]:1000-2000", "169.254.169.254")
        #expect(rules.allows(try self.address("10.9.9.9", 5432), askedFor: nil))
        #expect(!rules.allows(try self.address("10.9.9.9", 5433), askedFor: nil))
        #expect(rules.allows(try self.address("fd00::5", 1000), askedFor: nil))
        #expect(!rules.allows(try self.address("fd00::5", 999), askedFor: nil))
        #expect(rules.allows(try self.address("169.254.169.254"), askedFor: nil))
        #expect(!rules.allows(try self.address("8.8.8.8", 5432), askedFor: nil))
    }

    @Test func aNameMayLeadIntoAPrivateNetworkButNotToAMetadataService() throws {
        let rules = try self.rules("*.internal.example:443")
        #expect(rules.allows(try self.address("10.0.0.1", 443), askedFor: "a.internal.example"))
        #expect(!rules.allows(try self.address("10.0.0.1", 80), askedFor: "a.internal.example"))
        #expect(!rules.allows(try self.address("10.0.0.1", 443), askedFor: "b.example"))
        #expect(!rules.allows(try self.address("10.0.0.1", 443), askedFor: nil))
        #expect(!rules.allows(try self.address("169.254.169.254", 443), askedFor: "a.internal.example"))
    }

    @Test func aSocketIsAllowedByItsPathOrItsFolder() throws {
        let rules = try self.rules("unix:///run/app.sock", "unix:///run/many/*")
        #expect(rules.allows(try self.address("/run/app.sock"), askedFor: nil))
        #expect(rules.allows(try self.address("/run/many/a/b"), askedFor: nil))
        for path in ["/run/app.sock2", "/run/many", "/run/many/../docker.sock", "/run/other"] {
            #expect(!rules.allows(try self.address(path), askedFor: nil), "\(path)")
        }
    }

    @Test(arguments: [
        "", "special", "10.0.0.0/33", "10.0.0.1/8", "a b", "example.com:0", "example.com:70000", "example.com:9-8",
        "example.com:", "[::1", "unix://run", "unix:///a/../b", "http://example.com", "*", "fd00::/8:443",
    ])
    func invalidTargetRuleIsRefused(_ text: String) {
        #expect(throws: ValueSyntaxError.self) { try ValueSyntax<TargetRule>.targetRule.parse(text) }
    }
}
