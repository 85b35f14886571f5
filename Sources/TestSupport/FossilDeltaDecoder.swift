/// Applies deltas as Fossil's description of the format says, byte by byte.
package struct FossilDeltaDecoder {
    enum Fault: Error {
        case badNumber, badCommand, badRange, badSize, badChecksum
    }

    private var rest: ArraySlice<UInt8>

    package static func apply(_ delta: [UInt8], to source: [UInt8]) throws -> [UInt8] {
        var decoder = Self(rest: delta[...])
        return try decoder.decode(source)
    }

    private mutating func decode(_ source: [UInt8]) throws -> [UInt8] {
        let size = try self.number()
        guard self.rest.popFirst() == UInt8(ascii: "\n") else { throw Fault.badCommand }
        var target: [UInt8] = []
        while true {
            let value = try self.number()
            switch self.rest.popFirst() {
            case UInt8(ascii: "@"):
                let offset = try self.number()
                guard self.rest.popFirst() == UInt8(ascii: ",") else { throw Fault.badCommand }
                guard offset + value <= source.count else { throw Fault.badRange }
                target += source[offset..<(offset + value)]
            case UInt8(ascii: ":"):
                guard value <= self.rest.count else { throw Fault.badRange }
                target += self.rest.prefix(value)
                self.rest = self.rest.dropFirst(value)
            case UInt8(ascii: ";"):
                guard self.rest.isEmpty, target.count == size else { throw Fault.badSize }
                guard Self.checksum(target) == value else { throw Fault.badChecksum }
                return target
            default: throw Fault.badCommand
            }
        }
    }

    private mutating func number() throws -> Int {
        let digits = Array("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz~".utf8)
        var (value, count) = (0, 0)
        while let byte = self.rest.first, let digit = digits.firstIndex(of: byte) {
            (value, count) = (value * 64 + digit, count + 1)
            self.rest = self.rest.dropFirst()
        }
        guard (1...6).contains(count) else { throw Fault.badNumber }
        return value
    }

    private static func checksum(_ bytes: [UInt8]) -> Int {
        var sum = 0
        for start in stride(from: 0, to: bytes.count, by: 4) {
            for offset in 0..<4 {
                let index = start + offset
                sum += (index < bytes.count ? Int(bytes[index]) : 0) << (8 * (3 - offset))
            }
        }
        return sum & 0xFFFF_FFFF
    }
}
