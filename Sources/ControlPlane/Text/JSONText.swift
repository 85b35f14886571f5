import ByteKernels
import GatewayCore
import NIOCore
import StreamTransport
import WireText

/// Writes JSON (RFC 8259) directly into bytes, as a list of thousands of connections must be cheap to write.
package struct JSONText {
    package private(set) var bytes: [UInt8] = []
    /// Whether the next value is preceded by a comma.
    private var needsComma = false

    package init(capacity: Int = 0) {
        self.bytes.reserveCapacity(capacity)
    }

    /// Reserves capacity once for a value and its comma, and writes both.
    @inline(__always)
    private mutating func put(capacity: Int, _ write: (inout OutputSpan<UInt8>) -> Void) {
        let needsComma = self.needsComma
        self.bytes.append(addingCapacity: capacity + 1) { output in
            if needsComma { output.append(UInt8(ascii: ",")) }
            write(&output)
        }
        self.needsComma = true
    }

    @inline(__always)
    private mutating func put(_ key: JSONKey, capacity: Int, _ write: (inout OutputSpan<UInt8>) -> Void) {
        let needsComma = self.needsComma
        self.bytes.append(addingCapacity: JSONKey.capacity + capacity) { output in
            key.write(withComma: needsComma, to: &output)
            write(&output)
        }
        self.needsComma = true
    }

    /// Appends the text written so far to `buffer` and removes it here.
    package mutating func flush(to buffer: inout ByteBuffer) {
        buffer.writeBytes(self.bytes)
        self.bytes.removeAll(keepingCapacity: true)
    }

    // MARK: Structure

    package mutating func beginObject() { self.begin(UInt8(ascii: "{")) }
    package mutating func endObject() { self.end(UInt8(ascii: "}")) }
    package mutating func beginArray() { self.begin(UInt8(ascii: "[")) }
    package mutating func endArray() { self.end(UInt8(ascii: "]")) }

    private mutating func begin(_ mark: UInt8) {
        self.put(capacity: 1) { $0.append(mark) }
        self.needsComma = false
    }

    private mutating func end(_ mark: UInt8) {
        self.bytes.append(mark)
        self.needsComma = true
    }

    package mutating func key(_ key: JSONKey) {
        self.put(key, capacity: 0) { _ in }
        self.needsComma = false
    }

    /// A name that may need escaping.
    package mutating func escapedKey(_ name: String) {
        self.string(name)
        self.bytes.append(UInt8(ascii: ":"))
        self.needsComma = false
    }

    // MARK: Values

    package mutating func string(_ text: String) {
        let utf8 = text.utf8
        let span = utf8.span
        let capacity = OutputSpan.capacity(quoted: span)
        self.put(capacity: capacity) { $0.append(quoted: span, capacity: capacity) }
    }

    /// - Parameter value: of at most 64 bits.
    package mutating func number(_ value: some BinaryInteger) {
        self.put(capacity: OutputSpan.integerCapacity) { $0.append(integer: value) }
    }

    /// Writes 0 for a value that is not finite.
    package mutating func number(_ value: Double) {
        // Fast path: the default priority.
        if value == 0.5 { return self.put(capacity: 3) { $0.append(literal: "0.5") } }
        let text = value.isFinite ? "\(value)" : "0"
        self.put(capacity: text.utf8.count) { for byte in text.utf8 { $0.append(byte) } }
    }

    /// Writes a JSON value that is text already.
    package mutating func raw(_ value: [UInt8]) {
        self.put(capacity: value.count) { output in for byte in value { output.append(byte) } }
    }

    package mutating func null() {
        self.put(capacity: 4) { $0.append(literal: "null") }
    }

    package mutating func boolean(_ value: Bool) {
        self.put(capacity: 5) { $0.append(literal: value ? "true" : "false") }
    }

    // MARK: Members

    /// RFC 3339 in UTC with milliseconds.
    /// - Parameter milliseconds: since 1970-01-01T00:00:00Z.
    package mutating func member(_ key: JSONKey, time milliseconds: Int64) {
        self.put(key, capacity: WallClock.byteCount + 2) { $0.append(time: milliseconds) }
    }

    package mutating func member(_ key: JSONKey, _ text: String?) {
        guard let text else { return }
        let utf8 = text.utf8
        let span = utf8.span
        let capacity = OutputSpan.capacity(quoted: span)
        self.put(key, capacity: capacity) { $0.append(quoted: span, capacity: capacity) }
    }

    package mutating func member(_ key: JSONKey, _ value: (some BinaryInteger)?) {
        guard let value else { return }
        self.put(key, capacity: OutputSpan.integerCapacity) { $0.append(integer: value) }
    }

    package mutating func member(_ key: JSONKey, _ duration: Duration?) {
        guard let duration else { return }
        self.member(key, microseconds: duration.wholeMicroseconds)
    }

    /// As milliseconds.
    private mutating func member(_ key: JSONKey, microseconds: Int64) {
        self.put(key, capacity: OutputSpan.millisecondsCapacity) { $0.append(microseconds: microseconds) }
    }

    package mutating func member(_ key: JSONKey, _ value: Bool?) {
        guard let value else { return }
        self.put(key, capacity: 5) { $0.append(literal: value ? "true" : "false") }
    }

    package mutating func member(_ key: JSONKey, fraction: Double?) {
        guard let fraction else { return }
        self.key(key)
        self.number(fraction)
    }

    package mutating func member(_ key: JSONKey, from start: MonotonicInstant, to end: MonotonicInstant) {
        self.member(key, microseconds: (end.nanoseconds &- start.nanoseconds) / 1000)
    }

    /// An object with sorted names; omitted if empty.
    package mutating func member(_ key: JSONKey, _ labels: [String: String]) {
        guard !labels.isEmpty else { return }
        self.key(key)
        self.beginObject()
        for (name, value) in labels.sorted(by: { $0.key < $1.key }) {
            self.escapedKey(name)
            self.string(value)
        }
        self.endObject()
    }

    // MARK: Names and addresses

    package mutating func member(_ key: JSONKey, _ connection: ConnectionKey?) {
        guard let connection else { return }
        self.put(key, capacity: OutputSpan.decimalRoom + 3) { output in
            output.append(UInt8(ascii: "\""))
            output.append(decimal: connection.number)
            if connection.side == .upstream { output.append(UInt8(ascii: "u")) }
            output.append(UInt8(ascii: "\""))
        }
    }

    package mutating func member(_ key: JSONKey, _ address: StreamTransport.SocketAddress?) {
        guard case .ipv4(let number, let port)? = address else { return self.member(key, address?.description) }
        self.put(key, capacity: StreamTransport.SocketAddress.ipv4Room + 2) { output in
            output.append(UInt8(ascii: "\""))
            StreamTransport.SocketAddress.write(ipv4: number, port: port, to: &output)
            output.append(UInt8(ascii: "\""))
        }
    }
}

extension Duration {
    /// Clamped to `Int64`: about ±292 000 years.
    package var wholeMicroseconds: Int64 {
        // Fast path: most stall durations are zero.
        guard self != .zero else { return 0 }
        let (seconds, attoseconds) = self.components
        let (scaled, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000)
        guard !overflow else { return seconds < 0 ? .min : .max }
        return scaled &+ attoseconds / 1_000_000_000_000
    }

    package init?(milliseconds: Double) {
        guard milliseconds.isFinite, abs(milliseconds) < 1e15 else { return nil }
        self = .microseconds(Int64((milliseconds * 1000).rounded()))
    }
}

/// JSON values (RFC 8259). The caller provides the capacity.
extension OutputSpan<UInt8> {
    fileprivate mutating func append(time milliseconds: Int64) {
        self.append(UInt8(ascii: "\""))
        WallClock.write(milliseconds: milliseconds, to: &self)
        self.append(UInt8(ascii: "\""))
    }

    /// Capacity that `append(quoted:capacity:)` needs.
    fileprivate static func capacity(quoted utf8: Span<UInt8>) -> Int {
        var capacity = utf8.count + 2
        for index in utf8.indices where Self.isEscaped(utf8[index]) { capacity += 5 }
        return capacity
    }

    /// - Parameter capacity: the result of `capacity(quoted:)`.
    fileprivate mutating func append(quoted utf8: Span<UInt8>, capacity: Int) {
        self.append(UInt8(ascii: "\""))
        if capacity == utf8.count + 2 {
            self.append(copying: utf8)
        } else {
            for index in utf8.indices {
                let byte = utf8[index]
                guard Self.isEscaped(byte) else {
                    self.append(byte)
                    continue
                }
                for part in JSONEscape(UInt16(byte)) { self.append(part) }
            }
        }
        self.append(UInt8(ascii: "\""))
    }

    /// DEL is escaped too: the text may be shown on a terminal.
    private static func isEscaped(_ byte: UInt8) -> Bool {
        byte < 0x20 || byte == 0x22 || byte == 0x5C || byte == 0x7F
    }

    /// Capacity that `append(integer:)` needs.
    fileprivate static var integerCapacity: Int { Self.decimalRoom + 1 }

    /// - Parameter value: of at most 64 bits.
    fileprivate mutating func append(integer value: some BinaryInteger) {
        if value < 0 { self.append(UInt8(ascii: "-")) }
        self.append(decimal: UInt64(truncatingIfNeeded: value.magnitude))
    }

    /// Capacity that `append(microseconds:)` needs.
    fileprivate static var millisecondsCapacity: Int { Self.integerCapacity + 4 }

    /// As milliseconds, with three decimal places unless they are zero.
    fileprivate mutating func append(microseconds: Int64) {
        if microseconds < 0 { self.append(UInt8(ascii: "-")) }
        let (whole, rest) = microseconds.magnitude.quotientAndRemainder(dividingBy: 1000)
        self.append(decimal: whole)
        guard rest > 0 else { return }
        self.append(UInt8(ascii: "."))
        self.append(decimal: rest / 100)
        self.append(twoDigits: rest % 100)
    }
}

extension Float {
    /// Rounded to seven decimal places, the precision of a `Float` from 0 to 1, so that 0.7 in JSON is written as 0.7.
    var decimal: Double { (Double(self) * 1e7).rounded() / 1e7 }
}

/// One moment on the monotonic and the wall clock: converts every instant to the same time of day each time.
package struct TimeAnchor: Sendable {
    package let instant: MonotonicInstant
    /// Milliseconds since 1970-01-01T00:00:00Z.
    package let milliseconds: Int64

    package init(instant: MonotonicInstant, milliseconds: Int64) {
        self.instant = instant
        self.milliseconds = milliseconds
    }

    /// RFC 3339 in UTC with milliseconds.
    package func text(_ instant: MonotonicInstant) -> String {
        WallClock.text(milliseconds: self.milliseconds(of: instant))
    }

    /// Milliseconds since 1970-01-01T00:00:00Z.
    package func milliseconds(of instant: MonotonicInstant) -> Int64 {
        let microseconds = (instant.nanoseconds &- self.instant.nanoseconds) / 1000
        let (whole, rest) = microseconds.quotientAndRemainder(dividingBy: 1000)
        return self.milliseconds &+ (rest < 0 ? whole - 1 : whole)
    }
}
