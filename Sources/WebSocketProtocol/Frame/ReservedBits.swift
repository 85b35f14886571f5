/// The reserved bits of a frame's first byte that an extension has given a meaning (RFC 6455 §5.2).
package struct ReservedBits: OptionSet, Sendable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    package static let none: ReservedBits = []
    /// RSV1 as permessage-deflate uses it: on the first frame of a data message alone (RFC 7692 §6).
    package static let compression = ReservedBits(rawValue: 0x40)
    /// RSV2 with a meaning that we do not know, so on any frame.
    package static let second = ReservedBits(rawValue: 0x20)
    /// RSV3 with a meaning that we do not know, so on any frame.
    package static let third = ReservedBits(rawValue: 0x10)
}
