import ByteKernels
import RedisEngine

/// What a reader makes of bytes: values, and possibly the violation that ends them.
struct Readings: Equatable {
    var values: [RedisValue] = []
    var violation: RedisViolation?

    static func of(_ pieces: [[UInt8]], limits: RedisReplyLimits = RedisReplyLimits()) -> Readings {
        var reader = RedisReplyReader(limits: limits)
        var readings = Readings()
        for piece in pieces { readings.add(piece, &reader) }
        return readings
    }

    mutating func add(_ piece: [UInt8], _ reader: inout RedisReplyReader) {
        let bytes = piece.span.bytes
        var consumed = 0
        while self.violation == nil {
            do {
                guard let value = try reader.read(bytes, consumed: &consumed) else { break }
                self.values.append(value)
            } catch {
                self.violation = error
            }
        }
    }
}

extension RedisValue {
    static func blob(_ text: String) -> RedisValue { .blobString(Array(text.utf8)) }
    static func simple(_ text: String) -> RedisValue { .simpleString(Array(text.utf8)) }
    static func error(_ text: String) -> RedisValue { .error(RedisServerError(text.utf8)) }

    /// Memory as the limit counts it, at most.
    var countedSize: Int {
        let contents: Int
        switch self {
        case .simpleString(let bytes), .blobString(let bytes), .verbatimString(_, let bytes): contents = bytes.count
        case .error(let error): contents = error.codeWord.utf8.count + error.message.utf8.count
        case .bigNumber(let text): contents = text.utf8.count
        case .number, .double, .boolean, .null: contents = 0
        case .array(let elements), .set(let elements), .push(let elements):
            contents = elements.reduce(0) { $0 + $1.countedSize }
        case .map(let entries): contents = entries.reduce(0) { $0 + $1.key.countedSize + $1.value.countedSize }
        }
        return contents + RedisReplyLimits.bytesPerValue
    }
}
