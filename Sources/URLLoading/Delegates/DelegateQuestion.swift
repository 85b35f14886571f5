/// One message to a delegate that wants an answer, in its two spellings.
struct DelegateQuestion<Answer: Sendable>: Sendable {
    let face: DelegateFace
    let method: DelegateMethod
    let asyncMethod: DelegateMethod
    let call: @Sendable (DelegateFace, OnceAnswer<Answer>) -> Void
    let callAsync: @Sendable (DelegateFace) async -> Answer

    var mayBeAnswered: Bool { self.face.mayAnswer(self.method) || self.face.mayAnswer(self.asyncMethod) }
}
