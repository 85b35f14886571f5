import Foundation
import GatewayCore
import StreamTransport
import TestSupport
import Testing

@Suite("Log lines of a tunnel")
struct TunnelRecordTests {
    private static let time = UTCTime(secondsSince1970: 1_767_225_599, nanoseconds: 123_456_789).description

    private static let record = TunnelRecord(
        identifier: 17, listener: "web", route: "mqtt", client: .ipv4(address: 0xC000_0207, port: 4711),
        peer: .ipv4(address: 0x7F00_0001, port: 5000), upstream: "tcp://10.0.0.5:1883")

    private static func closeLine(_ record: TunnelRecord) -> LogLine {
        record.closeLine(
            towardUpstream: TunnelTraffic(bytes: 1024, messages: 3),
            towardDownstream: TunnelTraffic(bytes: .max, messages: 0), duration: .milliseconds(65_043),
            reason: TerminationReason(.upstream, .relaying, .abnormalClose(closeCode: 1011)))
    }

    private static func object(_ line: String) throws -> [String: Any] {
        let parsed = try JSONSerialization.jsonObject(with: Data(line.utf8))
        return try #require(parsed as? [String: Any])
    }

    @Test func writesText() {
        #expect(
            Self.record.openLine.rendered(.text, time: Self.time, level: .info)
                == "2025-12-31T23:59:59.123Z info tunnel opened id=17 listener=web route=mqtt client=192.0.2.7:4711 "
                + "peer=127.0.0.1:5000 upstream=tcp://10.0.0.5:1883")
        #expect(
            Self.closeLine(Self.record).rendered(.text, time: Self.time, level: .info)
                == "2025-12-31T23:59:59.123Z info tunnel closed id=17 listener=web route=mqtt client=192.0.2.7:4711 "
                + "peer=127.0.0.1:5000 upstream=tcp://10.0.0.5:1883 duration=65.043 bytes_toward_upstream=1024 "
                + "bytes_toward_downstream=18446744073709551615 messages_toward_upstream=3 messages_toward_downstream=0 "
                + "reason=upstream/relaying/abnormal-close code=1011")
    }

    @Test func writesJSON() throws {
        let object = try Self.object(Self.closeLine(Self.record).rendered(.json, time: Self.time, level: .warning))
        #expect(object["time"] as? String == Self.time)
        #expect(object["level"] as? String == "warning")
        #expect(object["message"] as? String == "tunnel closed")
        #expect(object["id"] as? Int == 17)
        #expect(object["client"] as? String == "192.0.2.7:4711")
        #expect(object["duration"] as? Double == 65.043)
        #expect(object["reason"] as? String == "upstream/relaying/abnormal-close")
        #expect(object["code"] as? Int == 1011)
    }

    @Test func leavesOutWhatIsNotKnownOrTheSame() {
        let record = TunnelRecord(
            identifier: 1, listener: "l", client: .ipv6(high: 0, low: 1, scope: 0, port: 9),
            peer: .ipv6(high: 0, low: 1, scope: 0, port: 9))
        #expect(
            record.openLine.rendered(.text, time: "t", level: .info)
                == "t info tunnel opened id=1 listener=l client=[::1]:9")
    }

    static let hostile = [
        "", " ", "a b", "a=b", "\"", "\\", "a\nlevel=error", "a\r\n", "\u{0}", "\u{1B}[2J", "\u{7F}", "\u{85}",
        "\u{9B}31m",
        "\u{2028}", "\u{2029}", "\u{202E}txt", "\u{FEFF}", "grüße 🙂", "\",\"level\":\"x", "e\u{301}",
        String(decoding: [0x61, 0xFF, 0xC3, 0x0A] as [UInt8], as: UTF8.self),
    ]

    @Test(arguments: hostile)
    func nothingInAValueForgesALineOrAField(_ text: String) throws {
        var record = Self.record
        record.route = text
        record.upstream = text
        record.peer = .unix(path: text)
        for format in LogSettings.Format.allCases {
            let line = Self.closeLine(record).rendered(format, time: Self.time, level: .info)
            #expect(!line.unicodeScalars.contains { $0.properties.generalCategory == .control })
            #expect(!line.unicodeScalars.contains { [0x2028, 0x2029, 0x202E, 0xFEFF].contains($0.value) })
        }
        let object = try Self.object(Self.closeLine(record).rendered(.json, time: Self.time, level: .info))
        #expect(object["route"] as? String == text)
        #expect(object["peer"] as? String == "unix:" + text)
        #expect(object["level"] as? String == "info")
        #expect(object.count == 16)
    }

    @Test func aTextValueThatCouldBeTakenForMoreIsQuoted() {
        var line = LogLine("m")
        line.add("a", "x y=z")
        line.add("b", "")
        line.add("c", "plain-1.2:3/4")
        line.add("d", nil)
        #expect(line.rendered(.text, time: "t", level: .debug) == #"t debug m a="x y=z" b="" c=plain-1.2:3/4"#)
    }

    @Test func longValuesAreCut() {
        var line = LogLine("m")
        line.add("a", String(repeating: "x", count: 100_000))
        let text = line.rendered(.text, time: "t", level: .info)
        #expect(text.utf8.count < 1100 && text.hasSuffix("…\""))
    }

    @Test(arguments: [
        (Duration.zero, "0.000"), (.milliseconds(1), "0.001"), (.milliseconds(99), "0.099"),
        (.milliseconds(999), "0.999"),
        (.seconds(86_400), "86400.000"), (.nanoseconds(999_999), "0.000"), (.milliseconds(-5), "-0.005"),
        (.milliseconds(-1005), "-1.005"),
    ])
    func durationsAreSecondsWithThreeDecimals(_ duration: Duration, _ text: String) {
        var line = LogLine("m")
        line.add("d", duration)
        #expect(line.rendered(.text, time: "t", level: .info) == "t info m d=\(text)")
    }

    @Test(
        arguments: [
            (0, "1970-01-01T00:00:00.000Z"), (-1, "1969-12-31T23:59:59.000Z"),
            (951_782_400, "2000-02-29T00:00:00.000Z"),
            (951_868_800, "2000-03-01T00:00:00.000Z"), (4_107_542_400, "2100-03-01T00:00:00.000Z"),
            (1_709_210_096, "2024-02-29T12:34:56.000Z"), (253_402_300_799, "9999-12-31T23:59:59.000Z"),
            (.max, "9999-12-31T23:59:59.000Z"), (.min, "0000-01-01T00:00:00.000Z"),
        ] as [(Int64, String)])
    func timesAreThoseOfTheCalendar(_ seconds: Int64, _ text: String) {
        #expect(UTCTime(secondsSince1970: seconds).description == text)
    }

    @Test(arguments: 0..<200 as Range<UInt64>)
    func timesAreThoseOfFoundation(_ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let seconds = Int64.random(in: -12_000_000_000...200_000_000_000, using: &random)
        var calendar = Calendar(identifier: .iso8601)
        calendar.timeZone = .gmt
        let parts = calendar.dateComponents(
            [.year, .month, .day, .hour, .minute, .second], from: Date(timeIntervalSince1970: Double(seconds)))
        let numbers = UTCTime(secondsSince1970: seconds).description.split { !$0.isNumber }.prefix(6).compactMap {
            Int($0)
        }
        #expect(
            numbers == [parts.year, parts.month, parts.day, parts.hour, parts.minute, parts.second], "seed \(seed)")
    }
}
