import Foundation
import GatewayConfiguration
import GatewayCore
import Testing

@Suite("Log lines that cannot be forged")
struct LogLineTests {
    private static func line(_ text: String) -> LogLine {
        LogLine("connection opened", [("id", .number(.max)), ("route", .text(text)), ("client", .text("[::1]:80"))])
    }

    private static func object(_ line: String) throws -> [String: Any] {
        let parsed = try JSONSerialization.jsonObject(with: Data(line.utf8))
        return try #require(parsed as? [String: Any])
    }

    static let hostile = [
        "", " ", "a b", "a=b", "\"", "\\", "a\nlevel=error", "a\r\n", "\t", "\u{0}", "\u{1B}[2J", "\u{7F}", "\u{85}",
        "\u{9B}31m", "\u{2028}", "\u{2029}", "\u{202E}txt", "\u{2066}", "\u{200F}", "\u{FEFF}", "grüße 🙂",
        "\",\"level\":\"x", "e\u{301}", "x id=1", String(decoding: [0x61, 0xFF, 0xC3, 0x0A] as [UInt8], as: UTF8.self),
    ]

    @Test(arguments: hostile)
    func everyValueStaysOneLineAndOneObject(_ text: String) throws {
        for format in LogSettings.Format.allCases {
            let rendered = Self.line(text).rendered(format, at: "t")
            #expect(!rendered.unicodeScalars.contains { $0.properties.generalCategory == .control })
            #expect(
                !rendered.unicodeScalars.contains {
                    [0x2028, 0x2029, 0x200F, 0x202E, 0x2066, 0xFEFF].contains($0.value)
                })
        }
        let object = try Self.object(Self.line(text).rendered(.json, at: "t"))
        #expect(object["route"] as? String == text)
        #expect(object["level"] as? String == "info")
        #expect(object["id"] as? UInt64 == .max)
        #expect(Set(object.keys) == ["time", "level", "message", "id", "route", "client"])
    }

    @Test(arguments: hostile)
    func aTextValueThatCouldBeTakenForMoreIsQuoted(_ text: String) {
        let rendered = Self.line(text).rendered(.text, at: "t")
        #expect(rendered.hasPrefix("t info connection opened id=18446744073709551615 route=\""))
        #expect(rendered.hasSuffix("\" client=[::1]:80"))
    }

    @Test func plainValueIsNotQuoted() {
        let rendered = Self.line("tcp://10.0.0.5:1883/a?b,c").rendered(.text, at: "2026-01-31T23:59:59.123Z")
        #expect(
            rendered == "2026-01-31T23:59:59.123Z info connection opened id=18446744073709551615 "
                + "route=tcp://10.0.0.5:1883/a?b,c client=[::1]:80")
    }

    @Test(arguments: ["x", "\u{0}", "🙂"])
    func longValuesAreCut(_ character: String) throws {
        let text = String(repeating: character, count: 100_000)
        #expect(Self.line(text).rendered(.text, at: "t").utf8.count < 6 * 1024 + 200)
        let object = try Self.object(Self.line(text).rendered(.json, at: "t"))
        let value = try #require(object["route"] as? String)
        #expect(value.unicodeScalars.count == LogLine.valueLimit + 1 && value.hasSuffix("…"))
    }
}
