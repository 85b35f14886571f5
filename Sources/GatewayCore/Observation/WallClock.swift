import ByteKernels
import StreamTransport

/// The time of day, for logs.
package enum WallClock {
    /// RFC 3339 in UTC with milliseconds, as `2026-01-31T23:59:59.123Z`.
    package static func now() -> String {
        Self.text(milliseconds: Machine.wallClockMilliseconds())
    }

    /// The bytes of every text.
    package static let room = 24

    /// - Parameter milliseconds: since 1970-01-01T00:00:00Z, leap seconds not counted; from 0 to the end of the year 9999.
    package static func text(milliseconds: Int64) -> String {
        let bytes = [UInt8](capacity: Self.room) { Self.write(milliseconds: milliseconds, to: &$0) }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The same where there is `room`: lists of thousands of connections show several times each.
    package static func write(milliseconds: Int64, to output: inout OutputSpan<UInt8>) {
        let milliseconds = min(max(0, milliseconds), Self.latest)
        let (year, month, day) = Self.date(daysSinceEpoch: milliseconds / 86_400_000)
        let second = UInt64(milliseconds / 1000 % 86_400)
        output.append(twoDigits: year / 100)
        Self.write(year % 100, "-", to: &output)
        Self.write(month, "-", to: &output)
        Self.write(day, "T", to: &output)
        Self.write(second / 3600, ":", to: &output)
        Self.write(second / 60 % 60, ":", to: &output)
        Self.write(second % 60, ".", to: &output)
        let rest = UInt64(milliseconds % 1000)
        output.append(decimal: rest / 100)
        Self.write(rest % 100, "Z", to: &output)
    }

    /// 9999-12-31T23:59:59.999Z: RFC 3339 has four digits for the year.
    private static let latest: Int64 = 253_402_300_799_999

    /// The civil date in the proleptic Gregorian calendar, by counting years from March on, so that the leap day is a
    /// year's last.
    private static func date(daysSinceEpoch days: Int64) -> (UInt64, UInt64, UInt64) {
        let shifted = days + 719_468
        let era = shifted / 146_097
        let dayOfEra = shifted % 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        let day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
        let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
        return (UInt64(yearOfEra + era * 400 + (month <= 2 ? 1 : 0)), UInt64(month), UInt64(day))
    }

    private static func write(_ number: UInt64, _ mark: Unicode.Scalar, to output: inout OutputSpan<UInt8>) {
        output.append(twoDigits: number)
        output.append(UInt8(ascii: mark))
    }
}
