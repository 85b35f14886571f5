import ControlPlane
import Testing

@Suite("Entity tags, If-Match and If-None-Match, RFC 9110 §13.1")
struct EntityTagTests {
    private let tag = EntityTag(revision: 7)

    @Test func theTagThatIsThereMatches() {
        #expect(EntityTag.matches(self.tag.description, self.tag))
        #expect(EntityTag.matches("\"x\",  \(self.tag) , \"y\"", self.tag))
        #expect(EntityTag.matches("*", self.tag))
        #expect(EntityTag.matches(nil, self.tag) && EntityTag.matches(nil, nil))
    }

    @Test func ofWhatIsKnownNothingIsAskedForAgain() {
        #expect(EntityTag.excludes(self.tag.description, self.tag) && EntityTag.excludes("W/\(self.tag)", self.tag))
        #expect(EntityTag.excludes("\"x\", \(self.tag)", self.tag) && EntityTag.excludes(" * ", self.tag))
        #expect(!EntityTag.excludes(nil, self.tag) && !EntityTag.excludes("", self.tag))
        #expect(!EntityTag.excludes(EntityTag(revision: 8).description, self.tag))
        // Nothing is there that could be known.
        #expect(!EntityTag.excludes("*", nil))
    }

    @Test func anotherOneOrNothingDoesNot() {
        #expect(!EntityTag.matches(EntityTag(revision: 8).description, self.tag))
        #expect(!EntityTag.matches("W/\(self.tag)", self.tag))
        #expect(!EntityTag.matches("", self.tag))
        #expect(!EntityTag.matches("*", nil) && !EntityTag.matches(self.tag.description, nil))
    }
}
