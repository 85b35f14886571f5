/// The requirements for single types, which are all met alike.
extension ShapeDecoder.Members {
    func decode(_ type: Bool.Type, forKey key: Key) throws -> Bool { try self.recorder.member(type, key) }
    func decode(_ type: String.Type, forKey key: Key) throws -> String { try self.recorder.member(type, key) }
    func decode(_ type: Double.Type, forKey key: Key) throws -> Double { try self.recorder.member(type, key) }
    func decode(_ type: Float.Type, forKey key: Key) throws -> Float { try self.recorder.member(type, key) }
    func decode(_ type: Int.Type, forKey key: Key) throws -> Int { try self.recorder.member(type, key) }
    func decode(_ type: Int8.Type, forKey key: Key) throws -> Int8 { try self.recorder.member(type, key) }
    func decode(_ type: Int16.Type, forKey key: Key) throws -> Int16 { try self.recorder.member(type, key) }
    func decode(_ type: Int32.Type, forKey key: Key) throws -> Int32 { try self.recorder.member(type, key) }
    func decode(_ type: Int64.Type, forKey key: Key) throws -> Int64 { try self.recorder.member(type, key) }
    func decode(_ type: UInt.Type, forKey key: Key) throws -> UInt { try self.recorder.member(type, key) }
    func decode(_ type: UInt8.Type, forKey key: Key) throws -> UInt8 { try self.recorder.member(type, key) }
    func decode(_ type: UInt16.Type, forKey key: Key) throws -> UInt16 { try self.recorder.member(type, key) }
    func decode(_ type: UInt32.Type, forKey key: Key) throws -> UInt32 { try self.recorder.member(type, key) }
    func decode(_ type: UInt64.Type, forKey key: Key) throws -> UInt64 { try self.recorder.member(type, key) }
}

extension ShapeDecoder.Scalar {
    func decode(_ type: Bool.Type) throws -> Bool { try self.recorder.scalar(type) }
    func decode(_ type: String.Type) throws -> String { try self.recorder.scalar(type) }
    func decode(_ type: Double.Type) throws -> Double { try self.recorder.scalar(type) }
    func decode(_ type: Float.Type) throws -> Float { try self.recorder.scalar(type) }
    func decode(_ type: Int.Type) throws -> Int { try self.recorder.scalar(type) }
    func decode(_ type: Int8.Type) throws -> Int8 { try self.recorder.scalar(type) }
    func decode(_ type: Int16.Type) throws -> Int16 { try self.recorder.scalar(type) }
    func decode(_ type: Int32.Type) throws -> Int32 { try self.recorder.scalar(type) }
    func decode(_ type: Int64.Type) throws -> Int64 { try self.recorder.scalar(type) }
    func decode(_ type: UInt.Type) throws -> UInt { try self.recorder.scalar(type) }
    func decode(_ type: UInt8.Type) throws -> UInt8 { try self.recorder.scalar(type) }
    func decode(_ type: UInt16.Type) throws -> UInt16 { try self.recorder.scalar(type) }
    func decode(_ type: UInt32.Type) throws -> UInt32 { try self.recorder.scalar(type) }
    func decode(_ type: UInt64.Type) throws -> UInt64 { try self.recorder.scalar(type) }
}

extension ShapeDecoder.Elements {
    mutating func decode(_ type: Bool.Type) throws -> Bool { try self.next(type) }
    mutating func decode(_ type: String.Type) throws -> String { try self.next(type) }
    mutating func decode(_ type: Double.Type) throws -> Double { try self.next(type) }
    mutating func decode(_ type: Float.Type) throws -> Float { try self.next(type) }
    mutating func decode(_ type: Int.Type) throws -> Int { try self.next(type) }
    mutating func decode(_ type: Int8.Type) throws -> Int8 { try self.next(type) }
    mutating func decode(_ type: Int16.Type) throws -> Int16 { try self.next(type) }
    mutating func decode(_ type: Int32.Type) throws -> Int32 { try self.next(type) }
    mutating func decode(_ type: Int64.Type) throws -> Int64 { try self.next(type) }
    mutating func decode(_ type: UInt.Type) throws -> UInt { try self.next(type) }
    mutating func decode(_ type: UInt8.Type) throws -> UInt8 { try self.next(type) }
    mutating func decode(_ type: UInt16.Type) throws -> UInt16 { try self.next(type) }
    mutating func decode(_ type: UInt32.Type) throws -> UInt32 { try self.next(type) }
    mutating func decode(_ type: UInt64.Type) throws -> UInt64 { try self.next(type) }
}
