"""Skills: folders of instructions that an agent loads when it needs them.

::

    skill       one folder: its SKILL.md, read within bounds and checked, and its other files
    catalogue   the folders that have skills, and what is wrong with some of them
    actions     what people can do about skills: see them, switch one off or on
    feature     the plugin: the catalogue in the prompt, and the two tools that load instructions and files
"""

from skills_feature.catalogue import Catalogue, find_skills
from skills_feature.feature import SkillsFeature
from skills_feature.skill import Skill, SkillError, read_skill

__all__ = ["Catalogue", "Skill", "SkillError", "SkillsFeature", "find_skills", "read_skill"]
