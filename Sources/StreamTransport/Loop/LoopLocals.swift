/// Objects that all connections of one loop share: pools, scratch buffers, a generator. Asked for once, when a
/// connection is made.
struct LoopLocals {
    private var objects: [ObjectIdentifier: AnyObject] = [:]

    mutating func object<T: AnyObject>(_ type: T.Type, make: () -> T) -> T {
        if let found = self.objects[ObjectIdentifier(type)] as? T { return found }
        let made = make()
        self.objects[ObjectIdentifier(type)] = made
        return made
    }
}
