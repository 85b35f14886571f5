import CommandLineText
import Testing

@Suite("Formatting of sizes and durations")
struct QuantityTextTests {
    @Test(
        arguments: [
            (0, "0 B"), (1, "1 B"), (1023, "1023 B"), (1024, "1 KiB"), (1536, "1.5 KiB"), (10_240, "10 KiB"),
            (1_048_575, "1 MiB"), (1 << 20, "1 MiB"), (241_591_911, "230 MiB"), (UInt64.max, "16 EiB"),
        ] as [(UInt64, String)])
    func bytesAreWrittenWithAUnit(_ count: UInt64, _ text: String) {
        #expect(QuantityText.bytes(count) == text)
    }

    @Test(
        arguments: [
            (0, "0 ms"), (0.42, "0.4 ms"), (12.3, "12 ms"), (999.4, "999 ms"), (999.6, "1 s"), (3400, "3.4 s"),
            (59_949, "60 s"), (59_951, "1m00s"), (125_000, "2m05s"), (3_600_000, "1h00m"), (11_520_000, "3h12m"),
            (446_400_000, "5d04h"), (-1, "0 ms"), (.nan, "0 ms"), (.infinity, "0 ms"), (1e300, "11574074074d01h"),
        ] as [(Double, String)])
    func durationsAreWrittenWithAUnit(_ milliseconds: Double, _ text: String) {
        #expect(QuantityText.duration(milliseconds: milliseconds) == text)
    }

    @Test(
        arguments: [
            (0, "0 %"), (0.374, "37 %"), (3.5, "350 %"), (-1, "0 %"), (.nan, "0 %"), (1e300, "1000000000000000 %"),
        ] as [(Double, String)])
    func sharesAreWrittenInPercent(_ share: Double, _ text: String) {
        #expect(QuantityText.percent(share) == text)
    }
}
