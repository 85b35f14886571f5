/// One value of RESP2 or RESP3: a reply, or a part of one.
package enum RedisValue: Sendable {
    case simpleString([UInt8])
    case blobString([UInt8])
    /// Text for humans. The format is three characters: `txt`, `mkd`.
    case verbatimString(format: String, [UInt8])
    indirect case error(RedisServerError)
    case number(Int64)
    /// Decimal digits of an integer of any size, possibly with a sign.
    case bigNumber(String)
    case double(Double)
    case boolean(Bool)
    /// RESP3's null, and both nulls of RESP2.
    case null
    case array([RedisValue])
    case map([Entry])
    case set([RedisValue])
    case push([RedisValue])

    /// One pair of a map, in the order of arrival. Keys are not checked for duplicates.
    package struct Entry: Equatable, Sendable {
        package let key: RedisValue
        package let value: RedisValue

        package init(_ key: RedisValue, _ value: RedisValue) {
            self.key = key
            self.value = value
        }
    }

    /// Kind and size of the value for messages and logs, without its contents.
    package var kind: String {
        switch self {
        case .simpleString(let bytes): "a simple string of \(bytes.count) bytes"
        case .blobString(let bytes): "a blob string of \(bytes.count) bytes"
        case .verbatimString(_, let bytes): "a verbatim string of \(bytes.count) bytes"
        case .error(let error): "the error \(error.codeWord)"
        case .number: "a number"
        case .bigNumber: "a big number"
        case .double: "a double"
        case .boolean: "a boolean"
        case .null: "null"
        case .array(let elements): "an array of \(elements.count)"
        case .map(let entries): "a map of \(entries.count)"
        case .set(let elements): "a set of \(elements.count)"
        case .push(let elements): "a push of \(elements.count)"
        }
    }
}

extension RedisValue: Equatable {
    /// NaN equals NaN here: two values are equal if the server sent the same.
    package static func == (left: RedisValue, right: RedisValue) -> Bool {
        switch left {
        case .simpleString(let left): if case .simpleString(let right) = right { left == right } else { false }
        case .blobString(let left): if case .blobString(let right) = right { left == right } else { false }
        case .error(let left): if case .error(let right) = right { left == right } else { false }
        case .number(let left): if case .number(let right) = right { left == right } else { false }
        case .bigNumber(let left): if case .bigNumber(let right) = right { left == right } else { false }
        case .boolean(let left): if case .boolean(let right) = right { left == right } else { false }
        case .array(let left): if case .array(let right) = right { left == right } else { false }
        case .map(let left): if case .map(let right) = right { left == right } else { false }
        case .set(let left): if case .set(let right) = right { left == right } else { false }
        case .push(let left): if case .push(let right) = right { left == right } else { false }
        case .verbatimString(let format, let left):
            if case .verbatimString(format, let right) = right { left == right } else { false }
        case .double(let left):
            if case .double(let right) = right { left == right || left.isNaN && right.isNaN } else { false }
        case .null: if case .null = right { true } else { false }
        }
    }
}

/// The server answered with another type of value than the command has.
package struct RedisTypeMismatch: Error, Equatable, CustomStringConvertible {
    package let expected: String
    /// Kind and size of the value, never its contents.
    package let found: String
    /// The server's error, if that was the value.
    package let serverError: RedisServerError?

    package var description: String {
        "Redis answered with \(self.found) where \(self.expected) was expected"
    }

    fileprivate init(_ expected: String, _ value: RedisValue) {
        self.expected = expected
        self.found = value.kind
        if case .error(let error) = value { self.serverError = error } else { self.serverError = nil }
    }
}

/// Accessors take the types of both protocol versions, because RESP2 has fewer: a double is a blob string there, a map
/// is an array of keys and values.
extension RedisValue {
    package var isNull: Bool { self == .null }

    package var serverError: RedisServerError? {
        if case .error(let error) = self { error } else { nil }
    }

    /// - Returns: `nil` for null.
    package var nonNull: RedisValue? { self.isNull ? nil : self }

    /// The contents of a string of any type.
    package func bytes() throws(RedisTypeMismatch) -> [UInt8] {
        switch self {
        case .simpleString(let bytes), .blobString(let bytes), .verbatimString(_, let bytes): return bytes
        case .error, .number, .bigNumber, .double, .boolean, .null, .array, .map, .set, .push:
            throw RedisTypeMismatch("a string", self)
        }
    }

    /// The contents of a string of any type that is valid UTF-8.
    package func text() throws(RedisTypeMismatch) -> String {
        guard let text = String(validating: try self.bytes(), as: UTF8.self) else {
            throw RedisTypeMismatch("a string of UTF-8", self)
        }
        return text
    }

    /// A number, or a string of decimal digits.
    package func int() throws(RedisTypeMismatch) -> Int64 {
        if case .number(let number) = self { return number }
        guard let bytes = try? self.bytes(), let number = Int64(String(decoding: bytes, as: UTF8.self)) else {
            throw RedisTypeMismatch("a number", self)
        }
        return number
    }

    /// A double, a number, or a string that is one.
    package func double() throws(RedisTypeMismatch) -> Double {
        switch self {
        case .double(let double): return double
        case .number(let number): return Double(number)
        case .simpleString(let bytes), .blobString(let bytes):
            guard let double = DoubleText.value(bytes) else { throw RedisTypeMismatch("a double", self) }
            return double
        case .verbatimString, .error, .bigNumber, .boolean, .null, .array, .map, .set, .push:
            throw RedisTypeMismatch("a double", self)
        }
    }

    /// A boolean, or the numbers 0 and 1.
    package func bool() throws(RedisTypeMismatch) -> Bool {
        switch self {
        case .boolean(let boolean): return boolean
        case .number(0): return false
        case .number(1): return true
        case .simpleString, .blobString, .verbatimString, .error, .number, .bigNumber, .double, .null, .array, .map,
            .set, .push:
            throw RedisTypeMismatch("a boolean", self)
        }
    }

    /// The elements of an array, a set or a push.
    package func array() throws(RedisTypeMismatch) -> [RedisValue] {
        switch self {
        case .array(let elements), .set(let elements), .push(let elements): return elements
        case .simpleString, .blobString, .verbatimString, .error, .number, .bigNumber, .double, .boolean, .null, .map:
            throw RedisTypeMismatch("an array", self)
        }
    }

    /// The pairs of a map, or of an array of keys and values.
    package func map() throws(RedisTypeMismatch) -> [Entry] {
        switch self {
        case .map(let entries): return entries
        case .array(let elements) where elements.count.isMultiple(of: 2):
            return stride(from: 0, to: elements.count, by: 2).map { Entry(elements[$0], elements[$0 + 1]) }
        case .simpleString, .blobString, .verbatimString, .error, .number, .bigNumber, .double, .boolean, .null,
            .array, .set, .push:
            throw RedisTypeMismatch("a map", self)
        }
    }

    /// The simple string `OK`.
    package func ok() throws(RedisTypeMismatch) {
        guard case .simpleString(let bytes) = self, bytes == Array("OK".utf8) else {
            throw RedisTypeMismatch("OK", self)
        }
    }
}

extension [RedisValue.Entry] {
    /// The first value whose key is this text; `nil` without one.
    package subscript(name: String) -> RedisValue? {
        let bytes = Array<UInt8>(name.utf8)
        return self.first { entry in
            switch entry.key {
            case .simpleString(let key), .blobString(let key): key == bytes
            case .verbatimString, .error, .number, .bigNumber, .double, .boolean, .null, .array, .map, .set, .push:
                false
            }
        }?.value
    }
}

/// Doubles as RESP3 writes them.
enum DoubleText {
    /// Servers before Redis 7.2 write NaN as their C library does: with a sign, in capitals, with characters behind.
    static func value(_ text: some Collection<UInt8>) -> Double? {
        let text = Array(text)
        var digits = text[...]
        let isNegative = digits.first == UInt8(ascii: "-")
        if isNegative || digits.first == UInt8(ascii: "+") { digits = digits.dropFirst() }
        let word = String(decoding: digits.prefix(4), as: UTF8.self).lowercased()
        if word == "inf" { return isNegative ? -.infinity : .infinity }
        if word == "nan" || word == "nan(" && digits.last == UInt8(ascii: ")") { return .nan }
        guard self.isDecimal(digits) else { return nil }
        return Double(String(decoding: text, as: UTF8.self))
    }

    /// Digits, then possibly a point and digits, then possibly an exponent.
    private static func isDecimal(_ digits: ArraySlice<UInt8>) -> Bool {
        var rest = digits
        func skipDigits() -> Bool {
            let count = rest.prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }.count
            rest = rest.dropFirst(count)
            return count > 0
        }
        guard skipDigits() else { return false }
        if rest.first == UInt8(ascii: ".") {
            rest = rest.dropFirst()
            guard skipDigits() else { return false }
        }
        if let letter = rest.first, letter | 0x20 == UInt8(ascii: "e") {
            rest = rest.dropFirst()
            if rest.first == UInt8(ascii: "+") || rest.first == UInt8(ascii: "-") { rest = rest.dropFirst() }
            guard skipDigits() else { return false }
        }
        return rest.isEmpty
    }
}
