/// How many bytes of one direction of a tunnel may wait to be written.
package struct BufferWatermarks: Sendable, Equatable {
    /// From here on its source is not read. 4 KiB to 64 MiB.
    package var high = 64 * 1024
    /// Down to here it is read again. 0 to below `high`; a quarter of it unless said.
    package var low = 16 * 1024

    package init() {}

    package init(high: Int, low: Int) {
        self.high = high
        self.low = low
    }

    /// Most bytes taken from the sender in one read: four times `high`, at most 256 KiB. Larger than `high`, because
    /// bulk that the other side takes at once never waits, and each read costs a turn.
    ///
    /// - Parameter framing: that of a stream whose bytes become messages, else `nil`. In `lines` each byte may end an empty
    ///   message, whose head takes six; so much less is taken at once. In `base64` a read becomes one message, made in one
    ///   step.
    package func readLimit(for framing: Framing?) -> Int {
        let limit = min(self.high, 64 << 10) * 4
        return switch framing {
        case .lines: limit / 6
        case .base64: limit / 4
        case .binary, .text, .lengthPrefixed, nil: limit
        }
    }
}
